#include "bench/dit_stage.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/random_tensor.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/dit/tensor_shapes.h"
#include "engine/sampling/latent_geometry.h"
#include "kernels/status_macros.h"
#include "tools/random_model/model_layout.h"
#include "tools/random_model/random_file.h"

namespace ltx::bench {
namespace {

/// A noise level in the middle of a schedule; what it is does not change the work.
constexpr float kSigma = 0.7f;
/// The block that spatio-temporal guidance skips in the reference's default.
constexpr int64_t kSkippedBlock = 29;

}  // namespace

absl::StatusOr<DitInputs> DitInputs::Make(const dit::Transformer& transformer,
                                          const StageSize& size) {
  const ClipSize& clip = size.clip;
  const int passes = size.passes;
  const int levels = size.levels;
  Device& device = transformer.device();
  const checkpoint::TransformerConfig& config = transformer.config();
  const DType dtype = transformer.dtype();
  DitInputs inputs;
  dit::StreamLayout video;
  video.tokens = clip.video_tokens();
  video.positions = sampling::VideoPositions(clip.latent(), clip.frame_rate);
  video.keyframes_mask = sampling::FirstFrameMask(clip.latent());
  dit::StreamLayout audio;
  audio.tokens = clip.audio_tokens();
  for (const auto& bounds : audio_vae::LatentGrid{}.TokenBounds(audio.tokens)) {
    audio.positions.insert(audio.positions.end(), bounds.begin(), bounds.end());
  }
  const auto fill = [&](dit::StreamKind kind, const dit::StreamLayout& layout, int64_t channels,
                        int64_t width, dit::Modality* modality) -> absl::Status {
    LTX_ASSIGN_OR_RETURN(modality->prepared, transformer.Prepare(kind, layout));
    LTX_ASSIGN_OR_RETURN(modality->latent,
                         RandomTensor(device, {passes, layout.tokens, channels}, dtype, 1));
    // All passes but the second have the prompt.
    LTX_ASSIGN_OR_RETURN(
        modality->context,
        RandomTensor(device, {std::min(passes, 2), size.text_tokens, width}, dtype, 2));
    if (passes > 1) modality->context_rows.assign(passes, 0);
    if (passes > 1) modality->context_rows[1] = 1;
    modality->sigma = {kSigma};
    modality->timesteps.assign(passes, kSigma);
    if (levels > 1) modality->timesteps.resize(passes * layout.tokens);
    for (size_t i = 0; levels > 1 && i < modality->timesteps.size(); ++i) {
      const auto level = static_cast<float>(i % levels);
      modality->timesteps[i] = kSigma * (1.0f - level / static_cast<float>(levels));
    }
    return absl::OkStatus();
  };
  LTX_RETURN_IF_ERROR(fill(dit::StreamKind::kVideo, video, config.in_channels, config.video_width(),
                           &inputs.video_));
  LTX_RETURN_IF_ERROR(fill(dit::StreamKind::kAudio, audio, config.audio_in_channels,
                           config.audio_width(), &inputs.audio_));
  if (passes < 3) return inputs;
  using Kind = dit::PerturbationKind;
  const std::vector<int64_t> skipped = {std::min(kSkippedBlock, config.num_layers - 1)};
  inputs.perturbations_.resize(passes);
  inputs.perturbations_[2] = {{Kind::kSkipVideoSelfAttention, skipped},
                              {Kind::kSkipAudioSelfAttention, skipped}};
  if (passes > 3) {
    inputs.perturbations_[3] = {{Kind::kSkipAudioToVideoAttention, std::nullopt},
                                {Kind::kSkipVideoToAudioAttention, std::nullopt}};
  }
  return inputs;
}

/// The weights of one block.
struct DitFloor::Block {
  struct Stream {
    LinearWeight self_in, self_out, text_q, text_kv, text_out, ff_in, ff_out;
  };
  struct Cross {
    LinearWeight q, kv, out;
  };
  Stream video, audio;
  Cross to_video, to_audio;
};

absl::StatusOr<DitFloor> DitFloor::Make(Device& device, const checkpoint::TransformerConfig& config,
                                        const StageSize& size, DType dtype) {
  DitFloor floor;
  floor.device_ = &device;
  floor.config_ = config;
  checkpoint::TransformerConfig two_blocks = config;
  two_blocks.num_layers = 2;
  checkpoint::WeightSet weights;
  random_model::FileLayout layout;
  layout.tensors = dit::ShapesOf(two_blocks);
  LTX_RETURN_IF_ERROR(weights.Add(std::make_shared<random_model::RandomFile>(std::move(layout))));
  const checkpoint::WeightLoader loader(&device, &weights, dtype, MemoryOwner::kWeightsDit);
  const int64_t heads = config.num_attention_heads;
  for (int64_t i = 0; i < two_blocks.num_layers; ++i) {
    checkpoint::WeightLoader block = loader.Sub(absl::StrCat("transformer_blocks.", i, "."));
    auto loaded = std::make_shared<Block>();
    const auto attention = [&](const std::string& name, int64_t query, int64_t context,
                               int64_t inner, bool self, LinearWeight* q, LinearWeight* kv,
                               LinearWeight* out) -> absl::Status {
      checkpoint::WeightLoader at = block.Sub(name);
      std::vector<checkpoint::WeightLoader::LinearPart> of_x = {{"to_q", inner}};
      if (self) {
        of_x.push_back({"to_k", inner});
        of_x.push_back({"to_v", inner});
      } else {
        LTX_ASSIGN_OR_RETURN(*kv, at.FusedLinear({{"to_k", inner}, {"to_v", inner}}, context));
      }
      if (config.apply_gated_attention) of_x.push_back({"to_gate_logits", heads});
      LTX_ASSIGN_OR_RETURN(*q, at.FusedLinear(of_x, query));
      LTX_ASSIGN_OR_RETURN(*out, at.Linear("to_out.0", inner, query));
      return absl::OkStatus();
    };
    const int64_t v = config.video_width();
    const int64_t a = config.audio_width();
    const auto stream = [&](const std::string& prefix, int64_t width, bool ff_bias,
                            Block::Stream* s) -> absl::Status {
      LTX_RETURN_IF_ERROR(attention(prefix + "attn1.", width, width, width, true, &s->self_in,
                                    nullptr, &s->self_out));
      LTX_RETURN_IF_ERROR(attention(prefix + "attn2.", width, width, width, false, &s->text_q,
                                    &s->text_kv, &s->text_out));
      LTX_ASSIGN_OR_RETURN(s->ff_in,
                           block.Linear(prefix + "ff.net.0.proj", width, 4 * width, ff_bias));
      LTX_ASSIGN_OR_RETURN(s->ff_out, block.Linear(prefix + "ff.net.2", 4 * width, width, ff_bias));
      return absl::OkStatus();
    };
    LTX_RETURN_IF_ERROR(stream("", v, config.ff_bias, &loaded->video));
    LTX_RETURN_IF_ERROR(stream("audio_", a, config.audio_ff_bias, &loaded->audio));
    LTX_RETURN_IF_ERROR(attention("audio_to_video_attn.", v, a, a, false, &loaded->to_video.q,
                                  &loaded->to_video.kv, &loaded->to_video.out));
    LTX_RETURN_IF_ERROR(attention("video_to_audio_attn.", a, v, a, false, &loaded->to_audio.q,
                                  &loaded->to_audio.kv, &loaded->to_audio.out));
    floor.blocks_.push_back(std::move(loaded));
  }
  const auto input = [&](int64_t tokens, int64_t width, uint32_t seed) {
    return RandomTensor(device, {1, tokens, width}, dtype, seed);
  };
  LTX_ASSIGN_OR_RETURN(floor.video_, input(size.clip.video_tokens(), config.video_width(), 1));
  LTX_ASSIGN_OR_RETURN(floor.audio_, input(size.clip.audio_tokens(), config.audio_width(), 2));
  LTX_ASSIGN_OR_RETURN(floor.video_text_, input(size.text_tokens, config.video_width(), 3));
  LTX_ASSIGN_OR_RETURN(floor.audio_text_, input(size.text_tokens, config.audio_width(), 4));
  return floor;
}

absl::Status DitFloor::Attend(const Columns& q, const Columns& k, const Columns& v,
                              const LinearWeight& out) const {
  AttentionOptions options;
  options.heads = options.kv_heads = config_.num_attention_heads;
  options.scale = 1.0f / std::sqrt(static_cast<float>(q.width / options.heads));
  LTX_ASSIGN_OR_RETURN(const Tensor attended, device_->Attention(q, k, v, options));
  return device_->Linear(attended, out).status();
}

absl::Status DitFloor::Issue() const {
  const auto cross = [&](const Tensor& x, const Tensor& context, int64_t inner,
                         const LinearWeight& of_x, const LinearWeight& of_context,
                         const LinearWeight& out) -> absl::Status {
    LTX_ASSIGN_OR_RETURN(const Tensor q, device_->Linear(x, of_x));
    LTX_ASSIGN_OR_RETURN(const Tensor kv, device_->Linear(context, of_context));
    return Attend(Columns(q, 0, inner), Columns(kv, 0, inner), Columns(kv, inner, inner), out);
  };
  const auto stream = [&](const Tensor& x, const Tensor& text,
                          const Block::Stream& w) -> absl::Status {
    const int64_t width = x.dim(2);
    {
      LTX_ASSIGN_OR_RETURN(const Tensor qkv, device_->Linear(x, w.self_in));
      LTX_RETURN_IF_ERROR(Attend(Columns(qkv, 0, width), Columns(qkv, width, width),
                                 Columns(qkv, 2 * width, width), w.self_out));
    }
    LTX_RETURN_IF_ERROR(cross(x, text, width, w.text_q, w.text_kv, w.text_out));
    LinearOptions gelu;
    gelu.activation = Activation::kGeluTanh;
    LTX_ASSIGN_OR_RETURN(const Tensor hidden, device_->Linear(x, w.ff_in, gelu));
    return device_->Linear(hidden, w.ff_out).status();
  };
  const int64_t inner = config_.audio_width();
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const Block& block = *blocks_[i % blocks_.size()];
    LTX_RETURN_IF_ERROR(stream(video_, video_text_, block.video));
    LTX_RETURN_IF_ERROR(stream(audio_, audio_text_, block.audio));
    const Block::Cross& to_video = block.to_video;
    LTX_RETURN_IF_ERROR(cross(video_, audio_, inner, to_video.q, to_video.kv, to_video.out));
    const Block::Cross& to_audio = block.to_audio;
    LTX_RETURN_IF_ERROR(cross(audio_, video_, inner, to_audio.q, to_audio.kv, to_audio.out));
  }
  return absl::OkStatus();
}

absl::Status DitFloor::Run() {
  if (!device_->can_record()) return Issue();
  if (recording_ == nullptr) {
    LTX_RETURN_IF_ERROR(Issue());
    LTX_RETURN_IF_ERROR(device_->ImproveAll());
    LTX_ASSIGN_OR_RETURN(recording_, device_->Record([this] { return Issue(); }));
  }
  return device_->Replay(*recording_);
}

}  // namespace ltx::bench
