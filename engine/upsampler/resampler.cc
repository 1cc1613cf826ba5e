#include "engine/upsampler/resampler.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/upsampler/res_block.h"
#include "kernels/status_macros.h"

namespace ltx::upsampler {
namespace {

void Report(const StageObserver& observer, const Tensor& x) {
  if (observer) observer("upsampler", x);
}

/// [B, F, H, W, C] -> [B F, H, W, C].
absl::StatusOr<Tensor> FoldFrames(const Tensor& x) {
  return x.Reshape(Shape({x.dim(0) * x.dim(1), x.dim(2), x.dim(3), x.dim(4)}));
}

/// A 2-D convolution to factor^2 times the width and a pixel shuffle, frame by frame.
/// [N, H, W, C] -> [N, H factor, W factor, C].
absl::StatusOr<Tensor> GrowFrames(Device& device, const PlainConv& conv, const Tensor& frames,
                                  int64_t factor) {
  LTX_ASSIGN_OR_RETURN(const Tensor wide, conv.Forward(device, frames));
  LTX_ASSIGN_OR_RETURN(
      const Tensor volume,
      wide.Reshape(Shape({wide.dim(0), 1, wide.dim(1), wide.dim(2), wide.dim(3)})));
  LTX_ASSIGN_OR_RETURN(
      const Tensor grown,
      device.DepthToSpace(volume, {1, static_cast<int>(factor), static_cast<int>(factor)},
                          /*drop_first_frame=*/false));
  return FoldFrames(grown);
}

/// x2 in space: keys upsampler.0, a 2-D convolution whatever the dims of the net.
class SpatialResampler final : public Resampler {
 public:
  static absl::StatusOr<std::unique_ptr<Resampler>> Load(int64_t channels,
                                                         checkpoint::WeightLoader loader) {
    auto resampler = std::make_unique<SpatialResampler>();
    LTX_ASSIGN_OR_RETURN(resampler->conv_,
                         PlainConv::Load(loader, "0", channels, kFactor * kFactor * channels, 2));
    return resampler;
  }

  LatentExtents OutputExtents(const LatentExtents& input) const override {
    return {input.frames, input.height * kFactor, input.width * kFactor};
  }

  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 const StageObserver& observer) const override {
    LTX_ASSIGN_OR_RETURN(const Tensor frames, FoldFrames(x));
    LTX_ASSIGN_OR_RETURN(const Tensor grown, GrowFrames(device, conv_, frames, kFactor));
    Report(observer, grown);
    return grown.Reshape(Shape({x.dim(0), x.dim(1), grown.dim(1), grown.dim(2), grown.dim(3)}));
  }

 private:
  static constexpr int64_t kFactor = 2;
  PlainConv conv_;
};

/// A rational factor in space: grow by `up` with a learned convolution and shuffle, then keep every
/// `down`-th sample of a blur. Keys upsampler.conv and upsampler.blur_down.kernel.
/// Source: the reference, upsampler/spatial_rational_resampler.py and blur_downsample.py.
class RationalResampler final : public Resampler {
 public:
  static absl::StatusOr<std::unique_ptr<Resampler>> Load(const checkpoint::UpsamplerConfig& config,
                                                         checkpoint::WeightLoader loader) {
    auto resampler = std::make_unique<RationalResampler>();
    const int64_t up = config.rational_up;
    resampler->up_ = up;
    resampler->down_ = config.rational_down;
    LTX_ASSIGN_OR_RETURN(resampler->conv_, PlainConv::Load(loader, "conv", config.mid_channels,
                                                           up * up * config.mid_channels, 2));
    if (resampler->down_ == 1) {
      // Files carry the kernel even where nothing is decimated.
      loader.Ignore("blur_down.kernel");
      return resampler;
    }
    // The stored kernel is a constant (a binomial low-pass); it is used as stored.
    LTX_ASSIGN_OR_RETURN(const Tensor kernel,
                         loader.Get("blur_down.kernel", Shape({1, 1, kBlurExtent, kBlurExtent})));
    LTX_ASSIGN_OR_RETURN(resampler->blur_,
                         loader.device().PrepareConv(kernel, Tensor(), loader.owner()));
    return resampler;
  }

  LatentExtents OutputExtents(const LatentExtents& input) const override {
    return {input.frames, Resampled(input.height), Resampled(input.width)};
  }

  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 const StageObserver& observer) const override {
    LTX_ASSIGN_OR_RETURN(Tensor frames, FoldFrames(x));
    LTX_ASSIGN_OR_RETURN(frames, GrowFrames(device, conv_, frames, up_));
    if (down_ > 1) {
      LTX_ASSIGN_OR_RETURN(frames, BlurAndDecimate(device, frames));
    }
    LTX_ASSIGN_OR_RETURN(
        const Tensor result,
        frames.Reshape(Shape({x.dim(0), x.dim(1), frames.dim(1), frames.dim(2), frames.dim(3)})));
    Report(observer, result);
    return result;
  }

 private:
  static constexpr int64_t kBlurExtent = 5;

  int64_t Resampled(int64_t extent) const { return (up_ * extent - 1) / down_ + 1; }

  /// One kernel for all channels, so channels become batch rows of a one-channel convolution.
  absl::StatusOr<Tensor> BlurAndDecimate(Device& device, const Tensor& x) const {
    const int64_t frames = x.dim(0), channels = x.dim(3);
    LTX_ASSIGN_OR_RETURN(const Tensor planes, device.Permute(x, {0, 3, 1, 2}));
    LTX_ASSIGN_OR_RETURN(const Tensor images,
                         planes.Reshape(Shape({frames * channels, x.dim(1), x.dim(2), 1})));
    ConvOptions options;
    for (int axis = 0; axis < 2; ++axis) {
      options.axes[axis].stride = down_;
      options.axes[axis].pad_before = kBlurExtent / 2;
      options.axes[axis].pad_after = kBlurExtent / 2;
    }
    LTX_ASSIGN_OR_RETURN(const Tensor blurred, device.Conv(images, blur_, options));
    LTX_ASSIGN_OR_RETURN(
        const Tensor result,
        blurred.Reshape(Shape({frames, channels, blurred.dim(1), blurred.dim(2)})));
    return device.Permute(result, {0, 2, 3, 1});
  }

  int64_t up_ = 1;
  int64_t down_ = 1;
  PlainConv conv_;
  ConvWeight blur_;
};

/// x2 in time, or in time and space, with one 3-D convolution and shuffle: key upsampler.0. The
/// first frame of the result is surplus, since a latent's first frame stands for one pixel frame.
class TemporalResampler final : public Resampler {
 public:
  static absl::StatusOr<std::unique_ptr<Resampler>> Load(bool spatial_too, int64_t channels,
                                                         checkpoint::WeightLoader loader) {
    auto resampler = std::make_unique<TemporalResampler>();
    resampler->space_ = spatial_too ? 2 : 1;
    const int64_t growth = int64_t{2} * resampler->space_ * resampler->space_;
    LTX_ASSIGN_OR_RETURN(resampler->conv_,
                         PlainConv::Load(loader, "0", channels, growth * channels, 3));
    return resampler;
  }

  LatentExtents OutputExtents(const LatentExtents& input) const override {
    return {2 * input.frames - 1, input.height * space_, input.width * space_};
  }

  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 const StageObserver& observer) const override {
    LTX_ASSIGN_OR_RETURN(const Tensor wide, conv_.Forward(device, x));
    LTX_ASSIGN_OR_RETURN(const Tensor grown, device.DepthToSpace(wide, {2, space_, space_},
                                                                 /*drop_first_frame=*/false));
    Report(observer, grown);
    return device.Slice(grown, /*axis=*/1, 1, grown.dim(1));
  }

 private:
  int space_ = 1;
  PlainConv conv_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Resampler>> LoadResampler(const checkpoint::UpsamplerConfig& config,
                                                         const checkpoint::WeightLoader& loader) {
  if (config.temporal_upsample) {
    return TemporalResampler::Load(config.spatial_upsample, config.mid_channels, loader);
  }
  if (config.rational_resampler) return RationalResampler::Load(config, loader);
  return SpatialResampler::Load(config.mid_channels, loader);
}

}  // namespace ltx::upsampler
