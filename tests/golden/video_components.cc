#include "tests/golden/video_components.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/upsampler_config.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/upsampler/latent_upsampler.h"
#include "engine/upsampler/res_block.h"
#include "engine/video_vae/attention_block.h"
#include "engine/video_vae/causal_conv3d.h"
#include "engine/video_vae/conv_decoder.h"
#include "engine/video_vae/patchify.h"
#include "engine/video_vae/resnet_block.h"
#include "engine/video_vae/statistics.h"
#include "engine/video_vae/upsample_block.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

using checkpoint::WeightLoader;
using nlohmann::json;

// Cases hold [B, C, F, H, W] or [B, C, H, W]; the engine works channels last.

absl::StatusOr<Tensor> ToChannelsLast(Device& device, const Tensor& x) {
  if (x.rank() == 5) return device.Permute(x, {0, 2, 3, 4, 1});
  return device.Permute(x, {0, 2, 3, 1});
}

absl::StatusOr<Tensor> ToChannelsFirst(Device& device, const Tensor& x) {
  if (x.rank() == 5) return device.Permute(x, {0, 4, 1, 2, 3});
  return device.Permute(x, {0, 3, 1, 2});
}

absl::StatusOr<Tensor> InputChannelsLast(const GoldenCase& golden, Device& device,
                                         absl::string_view name, DType dtype = DType::kF32) {
  LTX_ASSIGN_OR_RETURN(const Tensor x, golden.Input(device, name, dtype));
  return ToChannelsLast(device, x);
}

absl::Status SetChannelsFirst(Device& device, absl::string_view name, const Tensor& x,
                              GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const Tensor moved, ToChannelsFirst(device, x));
  return outputs->Set(device, name, moved);
}

/// Collects stages under "stage.<name>" and remembers the first failure.
class StageRecorder {
 public:
  StageRecorder(Device* device, GoldenOutputs* outputs) : device_(device), outputs_(outputs) {}
  StageObserver observer() {
    return [this](absl::string_view name, const Tensor& x) {
      if (status_.ok()) {
        status_ = SetChannelsFirst(*device_, absl::StrCat("stage.", name), x, outputs_);
      }
    };
  }
  const absl::Status& status() const { return status_; }

 private:
  Device* const device_;
  GoldenOutputs* const outputs_;
  absl::Status status_;
};

/// Hands out noise.0, noise.1, ... of a case.
class RecordedNoise {
 public:
  RecordedNoise(const GoldenCase* golden, Device* device) : golden_(golden), device_(device) {}
  video_vae::NoiseSource source() {
    return [this](const Shape& shape, DType dtype) -> absl::StatusOr<Tensor> {
      const std::string name = absl::StrCat("noise.", next_++);
      LTX_ASSIGN_OR_RETURN(const Tensor draw, golden_->Input(*device_, name, dtype));
      if (draw.shape() != shape) {
        return absl::FailedPreconditionError(absl::StrCat(
            name, " has shape ", draw.shape().ToString(), ", asked for ", shape.ToString()));
      }
      return draw;
    };
  }
  absl::Status CheckAllDrawn() const {
    const std::string name = absl::StrCat("noise.", next_);
    if (golden_->HasInput(name)) {
      return absl::FailedPreconditionError(absl::StrCat(name, " was never drawn"));
    }
    return absl::OkStatus();
  }

 private:
  const GoldenCase* const golden_;
  Device* const device_;
  int next_ = 0;
};

// Parameters of a case, with the defaults of the reference.

int64_t IntParam(const json& params, const char* key, int64_t fallback) {
  const auto it = params.find(key);
  return it != params.end() && it->is_number_integer() ? it->get<int64_t>() : fallback;
}

double NumberParam(const json& params, const char* key, double fallback) {
  const auto it = params.find(key);
  return it != params.end() && it->is_number() ? it->get<double>() : fallback;
}

bool BoolParam(const json& params, const char* key, bool fallback) {
  const auto it = params.find(key);
  return it != params.end() && it->is_boolean() ? it->get<bool>() : fallback;
}

std::string StringParam(const json& params, const char* key, const char* fallback) {
  const auto it = params.find(key);
  return it != params.end() && it->is_string() ? it->get<std::string>() : fallback;
}

/// A number for all axes, or a list of three.
absl::StatusOr<std::array<int64_t, 3>> StrideParam(const json& params) {
  const auto it = params.find("stride");
  if (it == params.end()) return std::array<int64_t, 3>{1, 1, 1};
  if (it->is_number_integer()) {
    const int64_t stride = it->get<int64_t>();
    return std::array<int64_t, 3>{stride, stride, stride};
  }
  std::array<int64_t, 3> stride{};
  if (!it->is_array() || it->size() != 3) {
    return absl::InvalidArgumentError("params.stride must be a number or three numbers");
  }
  for (size_t i = 0; i < 3; ++i) {
    if (!(*it)[i].is_number_integer()) {
      return absl::InvalidArgumentError("params.stride must hold whole numbers");
    }
    stride[i] = (*it)[i].get<int64_t>();
  }
  return stride;
}

absl::StatusOr<PadMode> PaddingParam(const json& params) {
  const std::string mode = StringParam(params, "spatial_padding_mode", "zeros");
  if (mode == "zeros") return PadMode::kZeros;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "replicate") return PadMode::kReplicate;
  if (mode == "circular") return PadMode::kCircular;
  return absl::InvalidArgumentError(absl::StrCat("params.spatial_padding_mode: ", mode));
}

DType CaseDType(const json& params) {
  return StringParam(params, "dtype", "float32") == "bfloat16" ? DType::kBF16 : DType::kF32;
}

WeightLoader VaeWeights(const GoldenCase& golden, Device& device, DType dtype = DType::kF32) {
  return WeightLoader(&device, &golden.weights(), dtype, MemoryOwner::kWeightsVideoVae);
}

WeightLoader UpsamplerWeights(const GoldenCase& golden, Device& device, DType dtype) {
  return WeightLoader(&device, &golden.weights(), dtype, MemoryOwner::kWeightsUpsampler);
}

absl::StatusOr<Shape> StoredShape(const WeightLoader& loader, absl::string_view name) {
  const Shape* const shape = loader.ShapeOf(name);
  if (shape == nullptr) return absl::NotFoundError(absl::StrCat("no weight ", name));
  return *shape;
}

absl::Status RunCausalConv(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  WeightLoader loader = VaeWeights(golden, device);
  video_vae::CausalConv3dOptions options;
  options.kernel = IntParam(golden.params(), "kernel_size", 3);
  LTX_ASSIGN_OR_RETURN(options.stride, StrideParam(golden.params()));
  LTX_ASSIGN_OR_RETURN(options.spatial_padding, PaddingParam(golden.params()));
  LTX_ASSIGN_OR_RETURN(const Shape weight, StoredShape(loader, "conv.weight"));
  LTX_ASSIGN_OR_RETURN(const auto conv, video_vae::CausalConv3d::Load(loader, "conv", weight.dim(1),
                                                                      weight.dim(0), options));
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  LTX_ASSIGN_OR_RETURN(const Tensor y,
                       conv.Forward(device, x, BoolParam(golden.params(), "causal", true)));
  return SetChannelsFirst(device, "y", y, outputs);
}

absl::Status RunStatistics(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  LTX_ASSIGN_OR_RETURN(const auto statistics,
                       video_vae::ChannelStatistics::Load(VaeWeights(golden, device), x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(const Tensor normalized, statistics.Normalize(device, x));
  LTX_RETURN_IF_ERROR(SetChannelsFirst(device, "normalized", normalized, outputs));
  LTX_ASSIGN_OR_RETURN(const Tensor un_normalized, statistics.UnNormalize(device, x));
  return SetChannelsFirst(device, "un_normalized", un_normalized, outputs);
}

absl::Status RunPatchify(const GoldenCase& golden, const GoldenContext& context,
                         GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  LTX_ASSIGN_OR_RETURN(const Tensor y,
                       video_vae::Patchify(device, x, IntParam(golden.params(), "patch_size", 4)));
  return SetChannelsFirst(device, "y", y, outputs);
}

absl::Status RunResnetBlock(const GoldenCase& golden, const GoldenContext& context,
                            GoldenOutputs* outputs) {
  Device& device = *context.device;
  const json& params = golden.params();
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  video_vae::ResnetBlockOptions options;
  options.in_channels = IntParam(params, "in_channels", x.dim(-1));
  options.out_channels = IntParam(params, "out_channels", options.in_channels);
  options.norm_layer = StringParam(params, "norm_layer", "pixel_norm") == "group_norm"
                           ? checkpoint::VideoNorm::kGroupNorm
                           : checkpoint::VideoNorm::kPixelNorm;
  options.groups = IntParam(params, "groups", video_vae::kNormGroups);
  options.epsilon = static_cast<float>(NumberParam(params, "eps", video_vae::kGroupNormEpsilon));
  options.inject_noise = BoolParam(params, "inject_noise", false);
  options.timestep_conditioning = BoolParam(params, "timestep_conditioning", false);
  LTX_ASSIGN_OR_RETURN(options.spatial_padding, PaddingParam(params));
  LTX_ASSIGN_OR_RETURN(const auto block,
                       video_vae::ResnetBlock::Load(VaeWeights(golden, device), options));

  Tensor embedding;
  if (options.timestep_conditioning) {
    LTX_ASSIGN_OR_RETURN(const Tensor stored, golden.Input(device, "timestep_embedding"));
    LTX_ASSIGN_OR_RETURN(embedding, stored.Reshape(Shape({stored.dim(0), stored.dim(1)})));
  }
  RecordedNoise noise(&golden, &device);
  const video_vae::NoiseSource source = noise.source();
  video_vae::BlockContext block_context;
  block_context.device = &device;
  block_context.causal = BoolParam(params, "causal", true);
  block_context.noise = &source;
  LTX_ASSIGN_OR_RETURN(const Tensor y, block->ForwardConditioned(x, embedding, block_context));
  LTX_RETURN_IF_ERROR(noise.CheckAllDrawn());
  return SetChannelsFirst(device, "y", y, outputs);
}

absl::Status RunAttentionBlock(const GoldenCase& golden, const GoldenContext& context,
                               GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  LTX_ASSIGN_OR_RETURN(const auto block,
                       video_vae::AttentionBlock::Load(VaeWeights(golden, device), x.dim(-1)));
  video_vae::BlockContext block_context;
  block_context.device = &device;
  LTX_ASSIGN_OR_RETURN(const Tensor y, block->Forward(x, block_context));
  return SetChannelsFirst(device, "y", y, outputs);
}

absl::Status RunUpsampleBlock(const GoldenCase& golden, const GoldenContext& context,
                              GoldenOutputs* outputs) {
  Device& device = *context.device;
  const json& params = golden.params();
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  video_vae::UpsampleBlockOptions options;
  options.in_channels = IntParam(params, "in_channels", x.dim(-1));
  LTX_ASSIGN_OR_RETURN(const auto stride, StrideParam(params));
  for (size_t i = 0; i < stride.size(); ++i) options.stride[i] = static_cast<int>(stride[i]);
  options.reduction = IntParam(params, "reduction", 1);
  options.residual = BoolParam(params, "residual", false);
  LTX_ASSIGN_OR_RETURN(options.spatial_padding, PaddingParam(params));
  LTX_ASSIGN_OR_RETURN(const auto block,
                       video_vae::UpsampleBlock::Load(VaeWeights(golden, device), options));
  video_vae::BlockContext block_context;
  block_context.device = &device;
  block_context.causal = BoolParam(params, "causal", true);
  LTX_ASSIGN_OR_RETURN(const Tensor y, block->Forward(x, block_context));
  return SetChannelsFirst(device, "y", y, outputs);
}

absl::Status RunDecode(const GoldenCase& golden, const GoldenContext& context,
                       GoldenOutputs* outputs) {
  Device& device = *context.device;
  const DType dtype = ComputeDType(context, CaseDType(golden.params()), outputs);
  LTX_ASSIGN_OR_RETURN(const auto config, checkpoint::ParseVideoDecoderConfig(golden.config()));
  LTX_ASSIGN_OR_RETURN(const auto decoder,
                       video_vae::ConvDecoder::Load(config, VaeWeights(golden, device, dtype)));
  LTX_ASSIGN_OR_RETURN(const Tensor latent, InputChannelsLast(golden, device, "latent", dtype));
  RecordedNoise noise(&golden, &device);
  StageRecorder stages(&device, outputs);
  video_vae::ConvDecodeOptions options;
  options.noise = noise.source();
  options.observer = stages.observer();
  options.timestep = static_cast<float>(NumberParam(golden.params(), "timestep", options.timestep));
  LTX_ASSIGN_OR_RETURN(const Tensor video, decoder->Decode(latent, options));
  LTX_RETURN_IF_ERROR(stages.status());
  LTX_RETURN_IF_ERROR(noise.CheckAllDrawn());
  return SetChannelsFirst(device, "video", video, outputs);
}

absl::Status RunUpsamplerResBlock(const GoldenCase& golden, const GoldenContext& context,
                                  GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor x, InputChannelsLast(golden, device, "x"));
  LTX_ASSIGN_OR_RETURN(const auto block,
                       upsampler::ResBlock::Load(UpsamplerWeights(golden, device, DType::kF32),
                                                 x.dim(-1), IntParam(golden.params(), "dims", 3)));
  LTX_ASSIGN_OR_RETURN(const Tensor y, block.Forward(device, x));
  return SetChannelsFirst(device, "y", y, outputs);
}

absl::Status RunUpsampler(const GoldenCase& golden, const GoldenContext& context,
                          GoldenOutputs* outputs) {
  Device& device = *context.device;
  const DType dtype = ComputeDType(context, CaseDType(golden.params()), outputs);
  LTX_ASSIGN_OR_RETURN(const auto config, checkpoint::ParseUpsamplerConfig(golden.config()));
  WeightLoader loader = UpsamplerWeights(golden, device, dtype);
  // A case keeps the VAE's statistics beside the upsampler's weights.
  LTX_ASSIGN_OR_RETURN(const auto statistics,
                       video_vae::ChannelStatistics::Load(loader.Sub("vae.per_channel_statistics."),
                                                          config.in_channels));
  LTX_ASSIGN_OR_RETURN(const auto net, upsampler::LatentUpsampler::Load(config, loader));
  LTX_ASSIGN_OR_RETURN(const Tensor latent, InputChannelsLast(golden, device, "latent", dtype));
  StageRecorder stages(&device, outputs);
  LTX_ASSIGN_OR_RETURN(const Tensor y, net->Forward(latent, stages.observer()));
  LTX_RETURN_IF_ERROR(stages.status());
  LTX_RETURN_IF_ERROR(SetChannelsFirst(device, "y", y, outputs));
  LTX_ASSIGN_OR_RETURN(const Tensor y_video, net->UpsampleNormalized(latent, statistics));
  return SetChannelsFirst(device, "y_video", y_video, outputs);
}

}  // namespace

void RegisterVideoComponents(ComponentRegistry* registry) {
  (*registry)["vae.video.causal_conv3d"] = RunCausalConv;
  (*registry)["vae.video.stats"] = RunStatistics;
  (*registry)["vae.video.patchify"] = RunPatchify;
  (*registry)["vae.video.resnet_block"] = RunResnetBlock;
  (*registry)["vae.video.attn_block"] = RunAttentionBlock;
  (*registry)["vae.video.upsample"] = RunUpsampleBlock;
  (*registry)["vae.video.decode"] = RunDecode;
  (*registry)["upsampler.res_block"] = RunUpsamplerResBlock;
  (*registry)["upsampler.spatial"] = RunUpsampler;
  (*registry)["upsampler.temporal"] = RunUpsampler;
}

}  // namespace ltx::golden
