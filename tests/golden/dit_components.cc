#include "tests/golden/dit_components.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/dit/attention.h"
#include "engine/dit/attention_bias.h"
#include "engine/dit/rope_tables.h"
#include "engine/dit/timestep_embedding.h"
#include "engine/dit/transformer.h"
#include "engine/dit/transformer_block.h"
#include "engine/dit/x0.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

using checkpoint::ParseTransformerConfig;
using checkpoint::TransformerConfig;
using checkpoint::WeightLoader;
using nlohmann::json;

constexpr char kWeightPrefix[] = "model.diffusion_model.";

WeightLoader DitLoader(const GoldenCase& golden, const GoldenContext& context, DType dtype) {
  return WeightLoader(context.device, &golden.weights(), dtype, MemoryOwner::kWeightsDit)
      .Sub(kWeightPrefix);
}

RopeTable::Kind RopeKind(const TransformerConfig& config) {
  return config.rope_type == checkpoint::RopeType::kSplit ? RopeTable::Kind::kSplit
                                                          : RopeTable::Kind::kInterleaved;
}

/// Keeps what an observer is told as "stage.<name>".
class StageRecorder {
 public:
  StageRecorder(Device* device, GoldenOutputs* outputs) : device_(device), outputs_(outputs) {}

  StageObserver Observer() {
    return [this](absl::string_view name, const Tensor& tensor) {
      if (!status_.ok()) return;
      status_ = Record(name, tensor);
    };
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status Record(absl::string_view name, const Tensor& tensor) {
    Tensor shown = tensor;
    if (tensor.rank() == 2) {  // One vector per sample.
      LTX_ASSIGN_OR_RETURN(shown, tensor.Reshape({tensor.dim(0), 1, tensor.dim(1)}));
    }
    return outputs_->Set(*device_, absl::StrCat("stage.", name), shown);
  }

  Device* device_;
  GoldenOutputs* outputs_;
  absl::Status status_;
};

// --- Rotary tables ----------------------------------------------------------------------------

std::vector<float> MaxPositions(const json& value) {
  if (value.is_array()) return value.get<std::vector<float>>();
  return {value.get<float>()};
}

struct RopeCase {
  dit::RopeSpec spec;
  std::vector<float> positions;
  int64_t batch = 0;
  int64_t tokens = 0;
};

/// `kind` is video, audio or cross_video: the last has the time axis of the video positions.
absl::StatusOr<RopeCase> ReadRopeCase(const GoldenCase& golden, const std::string& kind) {
  const json& params = golden.params();
  const bool cross = kind == "cross_video";
  const std::string key = cross ? "cross" : kind;
  const std::string input = absl::StrCat(cross ? "video" : kind, "_positions");
  RopeCase rope;
  rope.spec.kind = params.value("rope_type", "split") == "interleaved"
                       ? RopeTable::Kind::kInterleaved
                       : RopeTable::Kind::kSplit;
  rope.spec.width = params.at(absl::StrCat(key, "_dim")).get<int64_t>();
  rope.spec.heads = params.at("num_attention_heads").get<int64_t>();
  rope.spec.theta = params.value("theta", 10000.0);
  rope.spec.max_position = MaxPositions(params.at(absl::StrCat(key, "_max_pos")));
  rope.spec.double_precision = params.value("frequencies_precision", "") == "float64";
  // Cross-modal attention takes the middle whatever the streams take.
  rope.spec.use_middle = cross || params.value("use_middle_indices_grid", true);
  LTX_ASSIGN_OR_RETURN(rope.positions, golden.InputFloats(input));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape(input));
  rope.batch = shape.dim(0);
  rope.tokens = shape.dim(2);
  if (cross) {
    rope.positions = dit::FirstAxisPositions(rope.positions, rope.batch, shape.dim(1), rope.tokens);
  }
  return rope;
}

int64_t FrequencyCount(const dit::RopeSpec& spec) {
  return spec.width / (2 * static_cast<int64_t>(spec.max_position.size()));
}

absl::Status RunRope(const GoldenCase& golden, const GoldenContext& context,
                     GoldenOutputs* outputs) {
  for (const std::string kind : {"video", "audio", "cross_video"}) {
    if (!golden.HasInput(absl::StrCat(kind, "_x"))) continue;
    LTX_ASSIGN_OR_RETURN(const RopeCase rope, ReadRopeCase(golden, kind));
    const std::vector<float> grid =
        dit::FrequencyGrid(rope.spec.theta, FrequencyCount(rope.spec), rope.spec.double_precision);
    outputs->SetFloats(absl::StrCat("stage.", kind, "_freq_grid"),
                       {static_cast<int64_t>(grid.size())}, grid);
    LTX_ASSIGN_OR_RETURN(const RopeTable table,
                         dit::BuildRopeTable(*context.device, rope.spec, rope.positions, rope.batch,
                                             rope.tokens, DType::kF32));
    LTX_RETURN_IF_ERROR(
        outputs->Set(*context.device, absl::StrCat("stage.", kind, "_cos"), table.cos));
    LTX_RETURN_IF_ERROR(
        outputs->Set(*context.device, absl::StrCat("stage.", kind, "_sin"), table.sin));
    LTX_ASSIGN_OR_RETURN(const Tensor x, golden.Input(*context.device, absl::StrCat(kind, "_x")));
    LTX_ASSIGN_OR_RETURN(const Tensor y, context.device->Rope(x, rope.spec.heads, table));
    LTX_RETURN_IF_ERROR(outputs->Set(*context.device, absl::StrCat(kind, "_x"), y));
  }
  return absl::OkStatus();
}

absl::Status RunRopeFull(const GoldenCase& golden, const GoldenContext& context,
                         GoldenOutputs* outputs) {
  for (const std::string kind : {"video", "audio", "cross_video"}) {
    LTX_ASSIGN_OR_RETURN(const RopeCase rope, ReadRopeCase(golden, kind));
    const int64_t count = FrequencyCount(rope.spec);
    outputs->SetFloats(absl::StrCat(kind, "_grid_f32"), {count},
                       dit::FrequencyGrid(rope.spec.theta, count, false));
    outputs->SetFloats(absl::StrCat(kind, "_grid_f64"), {count},
                       dit::FrequencyGrid(rope.spec.theta, count, true));
    LTX_ASSIGN_OR_RETURN(const RopeTable table,
                         dit::BuildRopeTable(*context.device, rope.spec, rope.positions, rope.batch,
                                             rope.tokens, DType::kF32));
    LTX_RETURN_IF_ERROR(outputs->Set(*context.device, absl::StrCat(kind, "_cos"), table.cos));
    LTX_RETURN_IF_ERROR(outputs->Set(*context.device, absl::StrCat(kind, "_sin"), table.sin));
  }
  return absl::OkStatus();
}

// --- Timesteps --------------------------------------------------------------------------------

absl::Status RunTimestepEmbed(const GoldenCase& golden, const GoldenContext& context,
                              GoldenOutputs* outputs) {
  Device& device = *context.device;
  const json& params = golden.params();
  const int64_t width = params.at("dim").get<int64_t>();
  const int64_t rows = params.at("coefficient").get<int64_t>();
  const int64_t channels = params.value("sinusoid_channels", dit::kSinusoidChannels);
  LTX_ASSIGN_OR_RETURN(std::vector<float> timesteps, golden.InputFloats("timesteps"));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("timesteps"));
  for (float& t : timesteps) t *= params.value("timestep_scale_multiplier", 1000.0f);
  const int64_t batch = shape.dim(0);
  const int64_t tokens = shape.dim(1);
  outputs->SetFloats("stage.sinusoid", {batch * tokens, channels},
                     dit::TimestepSinusoid(timesteps, channels));
  LTX_ASSIGN_OR_RETURN(
      const dit::AdaLayerNormSingle adaln,
      dit::AdaLayerNormSingle::Load(DitLoader(golden, context, DType::kF32).Sub("adaln_single."),
                                    width, rows, channels));
  LTX_ASSIGN_OR_RETURN(dit::UniqueTimesteps unique,
                       dit::GroupTimesteps(timesteps, batch, tokens, "timesteps"));
  unique.index.resize(batch * tokens, 0);
  LTX_ASSIGN_OR_RETURN(const Tensor sinusoid,
                       dit::SinusoidTensor(device, unique.values, DType::kF32, channels));
  LTX_ASSIGN_OR_RETURN(const dit::AdaLayerNormSingle::Result result,
                       adaln.Forward(device, sinusoid));
  LTX_ASSIGN_OR_RETURN(const Tensor embedded, device.GatherRows(result.embedded, unique.index));
  LTX_ASSIGN_OR_RETURN(const Tensor embedded_shaped, embedded.Reshape({batch, tokens, width}));
  LTX_RETURN_IF_ERROR(outputs->Set(device, "embedded_timestep", embedded_shaped));
  LTX_ASSIGN_OR_RETURN(const Tensor modulation, device.GatherRows(result.modulation, unique.index));
  LTX_ASSIGN_OR_RETURN(const Tensor modulation_shaped,
                       modulation.Reshape({batch, tokens, rows, width}));
  return outputs->Set(device, "modulation", modulation_shaped);
}

// --- Attention --------------------------------------------------------------------------------

absl::StatusOr<RopeTable> ReadRopeTable(const GoldenCase& golden, Device& device,
                                        RopeTable::Kind kind, const std::string& prefix) {
  RopeTable table;
  table.kind = kind;
  LTX_ASSIGN_OR_RETURN(table.cos, golden.Input(device, absl::StrCat(prefix, "cos")));
  LTX_ASSIGN_OR_RETURN(table.sin, golden.Input(device, absl::StrCat(prefix, "sin")));
  return table;
}

absl::StatusOr<dit::AttentionMask> ReadAttentionMask(const GoldenCase& golden,
                                                     const std::string& name) {
  dit::AttentionMask mask;
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape(name));
  LTX_ASSIGN_OR_RETURN(mask.values, golden.InputFloats(name));
  mask.batch = shape.dim(0);
  mask.queries = shape.dim(-2);
  mask.keys = shape.dim(-1);
  return mask;
}

dit::KeepFlags KeepFromWeights(std::vector<float> weights) {
  dit::KeepFlags keep;
  keep.all_skipped = std::all_of(weights.begin(), weights.end(), [](float w) { return w == 0.0f; });
  keep.weights = std::move(weights);
  return keep;
}

/// The self-attention outputs, each under a different condition.
absl::Status RunSelfAttention(const GoldenCase& golden, Device& device,
                              const dit::GatedAttention& attention, RopeTable::Kind kind,
                              GoldenOutputs* outputs) {
  dit::AttentionInputs inputs;
  LTX_ASSIGN_OR_RETURN(inputs.x, golden.Input(device, "x"));
  LTX_ASSIGN_OR_RETURN(inputs.rope, ReadRopeTable(golden, device, kind, ""));
  const int64_t batch = inputs.x.dim(0);
  const auto run = [&](const std::string& name, const dit::AttentionInputs& given,
                       const StageObserver& observer) -> absl::Status {
    LTX_ASSIGN_OR_RETURN(const Tensor out, attention.Forward(device, given, observer));
    return outputs->Set(device, name, out);
  };
  StageRecorder stages(&device, outputs);
  LTX_RETURN_IF_ERROR(run("self", inputs, stages.Observer()));
  LTX_RETURN_IF_ERROR(stages.status());
  if (golden.HasInput("self_mask01")) {
    LTX_ASSIGN_OR_RETURN(const dit::AttentionMask mask, ReadAttentionMask(golden, "self_mask01"));
    dit::AttentionInputs masked = inputs;
    LTX_ASSIGN_OR_RETURN(masked.bias, dit::SelfAttentionBias(device, mask, batch, inputs.x.dim(1),
                                                             DType::kF32, "self_mask01"));
    LTX_RETURN_IF_ERROR(run("self_masked", masked, nullptr));
    std::vector<float> shown = dit::LogSpaceBias(mask.values, DType::kF32);
    // The case stores the bias clamped.
    for (float& value : shown) value = std::max(value, -1e4f);
    outputs->SetFloats("stage.self_bias", {mask.batch, 1, mask.queries, mask.keys}, shown);
  }
  if (golden.HasInput("keep")) {
    dit::AttentionInputs perturbed = inputs;
    LTX_ASSIGN_OR_RETURN(std::vector<float> weights, golden.InputFloats("keep"));
    perturbed.keep = KeepFromWeights(std::move(weights));
    LTX_RETURN_IF_ERROR(run("self_one_perturbed", perturbed, nullptr));
    perturbed.keep = KeepFromWeights(std::vector<float>(batch, 0.0f));
    LTX_RETURN_IF_ERROR(run("self_all_perturbed", perturbed, nullptr));
  }
  return absl::OkStatus();
}

absl::Status RunAttention(const GoldenCase& golden, const GoldenContext& context,
                          GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const TransformerConfig config, ParseTransformerConfig(golden.config()));
  WeightLoader block =
      DitLoader(golden, context, DType::kF32)
          .Sub(absl::StrCat("transformer_blocks.", golden.params().value("block", 0), "."));
  const RopeTable::Kind kind = RopeKind(config);
  dit::AttentionConfig attention;
  attention.query_dim = config.video_width();
  attention.context_dim = config.video_width();
  attention.heads = config.num_attention_heads;
  attention.head_dim = config.attention_head_dim;
  attention.epsilon = static_cast<float>(config.norm_eps);
  attention.gated = config.apply_gated_attention;
  attention.self = true;
  LTX_ASSIGN_OR_RETURN(const dit::GatedAttention self,
                       dit::GatedAttention::Load(block.Sub("attn1."), attention));
  attention.self = false;
  LTX_RETURN_IF_ERROR(RunSelfAttention(golden, device, self, kind, outputs));
  if (golden.HasOutput("text_cross")) {
    LTX_ASSIGN_OR_RETURN(const dit::GatedAttention text,
                         dit::GatedAttention::Load(block.Sub("attn2."), attention));
    dit::AttentionInputs inputs;
    LTX_ASSIGN_OR_RETURN(inputs.x, golden.Input(device, "x"));
    LTX_ASSIGN_OR_RETURN(inputs.context, golden.Input(device, "context"));
    LTX_ASSIGN_OR_RETURN(const Tensor out, text.Forward(device, inputs));
    LTX_RETURN_IF_ERROR(outputs->Set(device, "text_cross", out));
  }
  if (golden.HasOutput("audio_to_video")) {
    attention.context_dim = config.audio_width();
    attention.heads = config.audio_num_attention_heads;
    attention.head_dim = config.audio_attention_head_dim;
    LTX_ASSIGN_OR_RETURN(const dit::GatedAttention cross,
                         dit::GatedAttention::Load(block.Sub("audio_to_video_attn."), attention));
    dit::AttentionInputs inputs;
    LTX_ASSIGN_OR_RETURN(inputs.x, golden.Input(device, "x"));
    LTX_ASSIGN_OR_RETURN(inputs.context, golden.Input(device, "audio_context"));
    LTX_ASSIGN_OR_RETURN(inputs.rope, ReadRopeTable(golden, device, kind, "cross_q_"));
    LTX_ASSIGN_OR_RETURN(inputs.key_rope, ReadRopeTable(golden, device, kind, "cross_k_"));
    LTX_ASSIGN_OR_RETURN(const Tensor out, cross.Forward(device, inputs));
    LTX_RETURN_IF_ERROR(outputs->Set(device, "audio_to_video", out));
  }
  return absl::OkStatus();
}

// --- One block --------------------------------------------------------------------------------

/// A per-token [B, N, W] or per-sample [B, 1, W] input as rows with an index.
absl::StatusOr<dit::Modulation> ReadModulation(const GoldenCase& golden, Device& device,
                                               const std::string& name, int64_t width) {
  dit::Modulation modulation;
  modulation.width = width;
  if (!golden.HasInput(name)) return modulation;
  LTX_ASSIGN_OR_RETURN(const Tensor values, golden.Input(device, name));
  const int64_t rows = values.dim(0) * values.dim(1);
  LTX_ASSIGN_OR_RETURN(modulation.vectors.rows, values.Reshape({rows, values.dim(2)}));
  if (values.dim(1) > 1) {
    std::vector<int32_t> index(rows);
    std::iota(index.begin(), index.end(), 0);
    LTX_ASSIGN_OR_RETURN(modulation.vectors.index, TensorFromInts(device, index, {rows}));
  }
  return modulation;
}

/// One stream of a block case.
struct BlockSide {
  dit::BlockStream stream;
  dit::BlockInput input;
  dit::StreamState state;
};

absl::Status ReadBlockSide(const GoldenCase& golden, const GoldenContext& context,
                           dit::StreamKind kind, RopeTable::Kind rope_kind,
                           const dit::StreamConfig& config, bool both, BlockSide* side) {
  Device& device = *context.device;
  const std::string name(dit::StreamName(kind));
  LTX_ASSIGN_OR_RETURN(side->state.x, golden.Input(device, name + "_x"));
  dit::BlockStream& stream = side->stream;
  LTX_ASSIGN_OR_RETURN(stream.context, golden.Input(device, name + "_context"));
  LTX_ASSIGN_OR_RETURN(stream.rope, ReadRopeTable(golden, device, rope_kind, name + "_"));
  if (golden.HasInput(name + "_cross_cos")) {
    LTX_ASSIGN_OR_RETURN(stream.cross_rope,
                         ReadRopeTable(golden, device, rope_kind, name + "_cross_"));
  }
  const auto modulation = [&](const char* suffix) {
    return ReadModulation(golden, device, name + suffix, config.width);
  };
  dit::SharedModulation shared;
  LTX_ASSIGN_OR_RETURN(shared.main, modulation("_modulation"));
  LTX_ASSIGN_OR_RETURN(shared.prompt, modulation("_prompt_modulation"));
  LTX_ASSIGN_OR_RETURN(shared.cross, modulation("_cross_scale_shift"));
  LTX_ASSIGN_OR_RETURN(shared.cross_gate, modulation("_cross_gate"));
  LTX_ASSIGN_OR_RETURN(const dit::BlockTables tables,
                       dit::BlockTables::Load(DitLoader(golden, context, DType::kF32), kind, config,
                                              both, golden.params().value("block", 0), 1));
  LTX_ASSIGN_OR_RETURN(const dit::StreamModulations modulations, tables.AddTo(device, shared));
  LTX_ASSIGN_OR_RETURN(side->input.modulation, modulations.Of(device, 0));
  side->input.stream = &stream;
  return absl::OkStatus();
}

dit::StreamConfig StreamConfigOf(const TransformerConfig& config, bool video) {
  dit::StreamConfig stream;
  stream.heads = video ? config.num_attention_heads : config.audio_num_attention_heads;
  stream.head_dim = video ? config.attention_head_dim : config.audio_attention_head_dim;
  stream.width = stream.heads * stream.head_dim;
  stream.epsilon = static_cast<float>(config.norm_eps);
  stream.gated_attention = config.apply_gated_attention;
  stream.cross_attention_adaln = config.cross_attention_adaln;
  stream.ff_bias = video ? config.ff_bias : config.audio_ff_bias;
  return stream;
}

absl::Status RunBlock(const GoldenCase& golden, const GoldenContext& context,
                      GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const TransformerConfig config, ParseTransformerConfig(golden.config()));
  const dit::StreamConfig video_config = StreamConfigOf(config, true);
  const dit::StreamConfig audio_config = StreamConfigOf(config, false);
  const bool has_video = golden.HasInput("video_x");
  const bool has_audio = golden.HasInput("audio_x");
  LTX_ASSIGN_OR_RETURN(
      const dit::TransformerBlock block,
      dit::TransformerBlock::Load(
          DitLoader(golden, context, DType::kF32)
              .Sub(absl::StrCat("transformer_blocks.", golden.params().value("block", 0), ".")),
          has_video ? &video_config : nullptr, has_audio ? &audio_config : nullptr));
  BlockSide video;
  BlockSide audio;
  const bool both = has_video && has_audio;
  if (has_video) {
    LTX_RETURN_IF_ERROR(ReadBlockSide(golden, context, dit::StreamKind::kVideo, RopeKind(config),
                                      video_config, both, &video));
  }
  if (has_audio) {
    LTX_RETURN_IF_ERROR(ReadBlockSide(golden, context, dit::StreamKind::kAudio, RopeKind(config),
                                      audio_config, both, &audio));
  }
  StageRecorder stages(&device, outputs);
  LTX_RETURN_IF_ERROR(block.Forward(device, has_video ? &video.input : nullptr, &video.state,
                                    has_audio ? &audio.input : nullptr, &audio.state,
                                    stages.Observer()));
  LTX_RETURN_IF_ERROR(stages.status());
  if (has_video) LTX_RETURN_IF_ERROR(outputs->Set(device, "video_x", video.state.x));
  if (has_audio) LTX_RETURN_IF_ERROR(outputs->Set(device, "audio_x", audio.state.x));
  return absl::OkStatus();
}

// --- Whole forwards ---------------------------------------------------------------------------

absl::StatusOr<dit::BatchPerturbations> ReadPerturbations(const json& params) {
  dit::BatchPerturbations batch;
  if (!params.contains("perturbations") || params.at("perturbations").is_null()) return batch;
  for (const json& sample : params.at("perturbations")) {
    std::vector<dit::Perturbation> perturbations;
    for (const json& entry : sample) {
      dit::Perturbation perturbation;
      LTX_ASSIGN_OR_RETURN(perturbation.kind,
                           dit::ParsePerturbationKind(entry.at("type").get<std::string>()));
      if (!entry.at("blocks").is_null()) {
        perturbation.blocks = entry.at("blocks").get<std::vector<int64_t>>();
      }
      perturbations.push_back(std::move(perturbation));
    }
    batch.push_back(std::move(perturbations));
  }
  return batch;
}

absl::StatusOr<dit::ContextMask> ReadContextMask(const GoldenCase& golden,
                                                 const std::string& name) {
  dit::ContextMask mask;
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape(name));
  LTX_ASSIGN_OR_RETURN(const DType dtype, golden.InputDType(name));
  LTX_ASSIGN_OR_RETURN(mask.values, golden.InputFloats(name));
  mask.kind = IsFloat(dtype) ? dit::ContextMask::Kind::kAdditive : dit::ContextMask::Kind::kKeep;
  // A bias without a batch axis is [queries, keys]; a keep mask is never without one.
  const bool shared = mask.kind == dit::ContextMask::Kind::kAdditive && shape.rank() == 2;
  mask.batch = shared ? 1 : shape.dim(0);
  mask.keys = shape.dim(-1);
  mask.queries = shape.num_elements() / std::max<int64_t>(1, mask.batch * mask.keys);
  return mask;
}

absl::StatusOr<dit::StreamLayout> ReadLayout(const GoldenCase& golden, const std::string& name) {
  dit::StreamLayout layout;
  LTX_ASSIGN_OR_RETURN(const Shape positions, golden.InputShape(name + "_positions"));
  LTX_ASSIGN_OR_RETURN(layout.positions, golden.InputFloats(name + "_positions"));
  layout.batch = positions.dim(0);
  layout.tokens = positions.dim(2);
  if (golden.HasInput(name + "_attention_mask")) {
    LTX_ASSIGN_OR_RETURN(layout.attention_mask,
                         ReadAttentionMask(golden, name + "_attention_mask"));
  }
  if (golden.HasInput(name + "_keyframes_mask")) {
    LTX_ASSIGN_OR_RETURN(layout.keyframes_mask, golden.InputFloats(name + "_keyframes_mask"));
  }
  return layout;
}

absl::StatusOr<std::optional<dit::Modality>> ReadModality(const GoldenCase& golden,
                                                          const dit::Transformer& transformer,
                                                          dit::StreamKind kind) {
  const std::string name(dit::StreamName(kind));
  if (!golden.HasInput(name + "_latent")) return std::nullopt;
  Device& device = transformer.device();
  dit::Modality modality;
  LTX_ASSIGN_OR_RETURN(const dit::StreamLayout layout, ReadLayout(golden, name));
  LTX_ASSIGN_OR_RETURN(modality.prepared, transformer.Prepare(kind, layout));
  LTX_ASSIGN_OR_RETURN(modality.latent,
                       golden.Input(device, name + "_latent", transformer.dtype()));
  LTX_ASSIGN_OR_RETURN(modality.context,
                       golden.Input(device, name + "_context", transformer.dtype()));
  LTX_ASSIGN_OR_RETURN(modality.sigma, golden.InputFloats(name + "_sigma"));
  LTX_ASSIGN_OR_RETURN(modality.timesteps, golden.InputFloats(name + "_timesteps"));
  if (golden.HasInput(name + "_context_mask")) {
    LTX_ASSIGN_OR_RETURN(modality.context_mask, ReadContextMask(golden, name + "_context_mask"));
  }
  modality.enabled = golden.params().value(name + "_enabled", true);
  return modality;
}

absl::StatusOr<dit::ModelClass> ReadModelClass(const json& params) {
  const std::string kind = params.value("model_kind", "av");
  if (kind == "av") return dit::ModelClass::kAudioVideo;
  if (kind == "video") return dit::ModelClass::kVideoOnly;
  if (kind == "audio") return dit::ModelClass::kAudioOnly;
  return absl::InvalidArgumentError(
      absl::StrCat("params.model_kind is ", kind, "; av, video or audio would be legal"));
}

/// A forward; with `denoise` its clean latents, too. Only then must the velocity have the latent's
/// channels.
absl::Status RunModel(const GoldenCase& golden, const GoldenContext& context, bool denoise,
                      GoldenOutputs* outputs) {
  Device& device = *context.device;
  const json& params = golden.params();
  const DType dtype = ComputeDType(
      context, params.value("compute_dtype", "f32") == "bf16" ? DType::kBF16 : DType::kF32,
      outputs);
  LTX_ASSIGN_OR_RETURN(const TransformerConfig config, ParseTransformerConfig(golden.config()));
  LTX_ASSIGN_OR_RETURN(const dit::ModelClass model_class, ReadModelClass(params));
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<dit::Transformer> transformer,
      dit::Transformer::Load(config, model_class, DitLoader(golden, context, dtype)));
  LTX_ASSIGN_OR_RETURN(const std::optional<dit::Modality> video,
                       ReadModality(golden, *transformer, dit::StreamKind::kVideo));
  LTX_ASSIGN_OR_RETURN(const std::optional<dit::Modality> audio,
                       ReadModality(golden, *transformer, dit::StreamKind::kAudio));
  LTX_ASSIGN_OR_RETURN(const dit::BatchPerturbations perturbations, ReadPerturbations(params));
  StageRecorder stages(&device, outputs);
  const dit::Modality* const video_in = video.has_value() ? &*video : nullptr;
  const dit::Modality* const audio_in = audio.has_value() ? &*audio : nullptr;
  dit::Prediction prediction;
  if (denoise) {
    LTX_ASSIGN_OR_RETURN(prediction, dit::PredictDenoised(*transformer, video_in, audio_in,
                                                          perturbations, stages.Observer()));
  } else {
    LTX_ASSIGN_OR_RETURN(
        prediction.velocity,
        transformer->Forward(video_in, audio_in, perturbations, stages.Observer()));
  }
  LTX_RETURN_IF_ERROR(stages.status());
  if (video.has_value()) {
    LTX_RETURN_IF_ERROR(outputs->Set(device, "video_velocity", prediction.velocity.video));
  }
  if (video.has_value() && denoise) {
    LTX_RETURN_IF_ERROR(outputs->Set(device, "video_denoised", prediction.denoised.video));
  }
  if (audio.has_value()) {
    LTX_RETURN_IF_ERROR(outputs->Set(device, "audio_velocity", prediction.velocity.audio));
  }
  if (audio.has_value() && denoise) {
    LTX_RETURN_IF_ERROR(outputs->Set(device, "audio_denoised", prediction.denoised.audio));
  }
  return absl::OkStatus();
}

absl::Status RunForward(const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) {
  return RunModel(golden, context, /*denoise=*/false, outputs);
}

absl::Status RunX0(const GoldenCase& golden, const GoldenContext& context, GoldenOutputs* outputs) {
  return RunModel(golden, context, /*denoise=*/true, outputs);
}

}  // namespace

void RegisterDitComponents(ComponentRegistry* registry) {
  (*registry)["dit.rope"] = RunRope;
  (*registry)["dit.rope_full"] = RunRopeFull;
  (*registry)["dit.timestep_embed"] = RunTimestepEmbed;
  (*registry)["dit.attention"] = RunAttention;
  (*registry)["dit.block"] = RunBlock;
  (*registry)["dit.forward"] = RunForward;
  (*registry)["dit.x0"] = RunX0;
}

}  // namespace ltx::golden
