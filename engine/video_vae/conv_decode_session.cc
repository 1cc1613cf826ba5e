#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "engine/video_vae/conv_decoder.h"
#include "engine/video_vae/frame_window.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {
namespace {

absl::StatusOr<DecodedFrames> FramesFrom(Device& device, const Tensor& video, int64_t first_frame) {
  LTX_ASSIGN_OR_RETURN(const Tensor clip, video.Reshape(Shape(video.shape().dims().subspan(1))));
  DecodedFrames result;
  result.first_frame = first_frame;
  LTX_ASSIGN_OR_RETURN(result.frames, ToFrames(device, clip));
  return result;
}

absl::Status NothingLeft() {
  return absl::FailedPreconditionError("video decode: all units are done");
}

}  // namespace

/// One unit that decodes everything.
class ConvDecoder::WholeSession final : public VideoDecodeSession {
 public:
  WholeSession(const ConvDecoder* decoder, Tensor latent, NoiseSource noise)
      : decoder_(decoder), latent_(std::move(latent)) {
    options_.noise = std::move(noise);
  }

  int64_t unit_count() const override { return 1; }
  int64_t units_done() const override { return done_ ? 1 : 0; }

  absl::StatusOr<std::optional<DecodedFrames>> Advance() override {
    if (done_) return NothingLeft();
    LTX_ASSIGN_OR_RETURN(const Tensor video, decoder_->Decode(latent_, options_));
    latent_ = Tensor();
    done_ = true;
    LTX_ASSIGN_OR_RETURN(DecodedFrames frames, FramesFrom(*decoder_->device_, video, 0));
    return std::optional<DecodedFrames>(std::move(frames));
  }

 private:
  const ConvDecoder* const decoder_;
  Tensor latent_;
  ConvDecodeOptions options_;
  bool done_ = false;
};

/// A unit for each block up to the last level, then one for each part of that.
class ConvDecoder::PartsSession final : public VideoDecodeSession {
 public:
  PartsSession(const ConvDecoder* decoder, Tensor latent, NoiseSource noise, int64_t input_frames,
               int64_t step)
      : decoder_(decoder),
        x_(std::move(latent)),
        step_(step),
        frames_(decoder->growth_->FramesFrom(input_frames)),
        growth_(input_frames, decoder->config_.causal),
        last_(frames_, decoder->config_.causal),
        head_units_(std::max<int64_t>(static_cast<int64_t>(decoder->growth_index_), 1)) {
    options_.noise = std::move(noise);
    for (const ResnetBlock* block : decoder->last_level_) {
      level_.emplace_back(block, &window_, frames_, decoder->config_.causal);
    }
    MeasureParts();
  }
  // The level's blocks know where the window is.
  PartsSession(const PartsSession&) = delete;
  PartsSession& operator=(const PartsSession&) = delete;

  int64_t unit_count() const override { return head_units_ + parts_; }
  int64_t units_done() const override { return units_done_; }

  absl::StatusOr<std::optional<DecodedFrames>> Advance() override {
    if (done()) return NothingLeft();
    std::optional<DecodedFrames> frames;
    if (units_done_ < head_units_) {
      LTX_RETURN_IF_ERROR(AdvanceHead());
    } else {
      LTX_ASSIGN_OR_RETURN(frames, AdvancePart((units_done_ - head_units_ + 1) * step_));
    }
    ++units_done_;
    return frames;
  }

 private:
  /// Goes through the parts without frames: how many there are, and how many frames the window
  /// must have room for.
  void MeasureParts() {
    ConvProgress growth = growth_;
    ConvProgress last = last_;
    while (!last.finished()) {
      const int64_t ready = ++parts_ * step_;
      const ConvPart made = growth.Next(ready);
      capacity_ = std::max(capacity_, decoder_->growth_->FramesFrom(made.end) - last.needed_from());
      last.Next(ReachOfLevel(growth.Reach(ready)));
    }
  }

  int64_t ReachOfLevel(int64_t input_reach) const {
    int64_t reach = decoder_->growth_->FramesFrom(input_reach);
    for (const ResnetParts& block : level_) reach = block.Reach(reach);
    return reach;
  }

  absl::Status AdvanceHead() {
    const BlockContext context = decoder_->Context(options_);
    if (units_done_ == 0) {
      LTX_ASSIGN_OR_RETURN(x_, decoder_->Begin(x_, options_));
    }
    if (decoder_->growth_index_ == 0) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(x_, decoder_->blocks_[units_done_]->Forward(std::move(x_), context));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<DecodedFrames>> AdvancePart(int64_t ready) {
    Device& device = *decoder_->device_;
    const BlockContext context = decoder_->Context(options_);
    LTX_RETURN_IF_ERROR(Grow(ready));
    int64_t reach = decoder_->growth_->FramesFrom(growth_.Reach(ready));
    for (ResnetParts& block : level_) {
      LTX_RETURN_IF_ERROR(block.Advance(reach, context));
      reach = block.Reach(reach);
    }
    const ConvPart part = last_.Next(reach);
    if (part.frames() == 0) return std::nullopt;
    LTX_ASSIGN_OR_RETURN(Tensor x, window_.Frames(part.read_begin, part.read_end));
    LTX_ASSIGN_OR_RETURN(const Tensor video,
                         decoder_->Finish(std::move(x), context.timestep, part.ends));
    LTX_ASSIGN_OR_RETURN(DecodedFrames frames, FramesFrom(device, video, part.begin));
    if (last_.finished()) window_ = FrameWindow();
    return std::optional<DecodedFrames>(std::move(frames));
  }

  /// The next frames of the level.
  absl::Status Grow(int64_t ready) {
    Device& device = *decoder_->device_;
    const UpsampleBlock& block = *decoder_->growth_;
    if (window_.end() == 0) {
      LTX_ASSIGN_OR_RETURN(
          window_, FrameWindow::Create(device,
                                       {x_.dim(2) * block.stride()[1],
                                        x_.dim(3) * block.stride()[2], block.out_channels()},
                                       x_.dtype(), capacity_));
    }
    const ConvPart part = growth_.Next(ready);
    if (part.frames() == 0) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(Tensor input, FramesOf(x_, part.read_begin, part.read_end));
    LTX_ASSIGN_OR_RETURN(
        Tensor into,
        window_.Append(device, block.FramesFrom(part.end) - block.FramesFrom(part.begin),
                       last_.needed_from()));
    LTX_RETURN_IF_ERROR(
        block.ForwardPart(std::move(input), part, std::move(into), decoder_->Context(options_)));
    if (growth_.finished()) x_ = Tensor();
    return absl::OkStatus();
  }

  const ConvDecoder* const decoder_;
  ConvDecodeOptions options_;
  /// The latent, then what the last block made, up to the level before the last.
  Tensor x_;
  /// Frames of the input of the last level's first block, by which a part goes on.
  const int64_t step_;
  const int64_t frames_;
  /// The last level's frames, in which its blocks work.
  FrameWindow window_;
  ConvProgress growth_;
  std::vector<ResnetParts> level_;
  ConvProgress last_;
  int64_t capacity_ = 0;
  const int64_t head_units_;
  int64_t parts_ = 0;
  int64_t units_done_ = 0;
};

absl::StatusOr<std::unique_ptr<VideoDecodeSession>> ConvDecoder::StartDecode(
    const Tensor& latent, NoiseSource noise) const {
  LTX_RETURN_IF_ERROR(CheckLatent(latent));
  LTX_ASSIGN_OR_RETURN(Tensor first, latent.Rows(0, 1));
  if (growth_ != nullptr && parts_.positions > 0) {
    const int64_t frames = (latent.dim(1) - 1) * factors_.temporal + 1;
    const int64_t scale = factors_.spatial / config_.patch_size;
    const int64_t wanted =
        FramesPerPart(parts_.positions, latent.dim(2) * scale * latent.dim(3) * scale);
    if (frames >= 2 * wanted) {
      const bool doubles = growth_->stride()[0] == 2;
      // Each part is a whole number of pairs on either side.
      const int64_t step = doubles ? (wanted + 3) / 4 * 2 : wanted;
      const int64_t input_frames = doubles ? (frames + 1) / 2 : frames;
      return std::make_unique<PartsSession>(this, std::move(first), std::move(noise), input_frames,
                                            step);
    }
  }
  return std::make_unique<WholeSession>(this, std::move(first), std::move(noise));
}

}  // namespace ltx::video_vae
