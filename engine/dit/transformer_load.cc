#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/dit/table_rows.h"
#include "engine/dit/transformer.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

using checkpoint::TransformerConfig;
using checkpoint::WeightLoader;

/// Scale and shift towards each of the two cross-modal directions.
constexpr int64_t kCrossRows = kCrossScaleShiftRows;
constexpr int64_t kGateRows = 1;

absl::Status CheckEqual(absl::string_view key, int64_t value, absl::string_view what,
                        int64_t expected) {
  if (value == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "config key transformer.%s is %d; it must be %d, %s", key, value, expected, what));
}

/// Widths that two config keys state must agree: text context, stream and rope tables meet in one
/// tensor.
absl::Status CheckConfig(const TransformerConfig& config, ModelClass model_class) {
  if (model_class != ModelClass::kAudioOnly) {
    LTX_RETURN_IF_ERROR(CheckEqual("cross_attention_dim", config.cross_attention_dim,
                                   "num_attention_heads * attention_head_dim",
                                   config.video_width()));
  }
  if (model_class != ModelClass::kVideoOnly) {
    LTX_RETURN_IF_ERROR(CheckEqual("audio_cross_attention_dim", config.audio_cross_attention_dim,
                                   "audio_num_attention_heads * audio_attention_head_dim",
                                   config.audio_width()));
  }
  if (model_class == ModelClass::kAudioVideo) {
    LTX_RETURN_IF_ERROR(CheckEqual("audio_num_attention_heads", config.audio_num_attention_heads,
                                   "num_attention_heads", config.num_attention_heads));
  }
  return absl::OkStatus();
}

RopeSpec BaseRope(const TransformerConfig& config) {
  RopeSpec spec;
  spec.kind = config.rope_type == checkpoint::RopeType::kSplit ? RopeTable::Kind::kSplit
                                                               : RopeTable::Kind::kInterleaved;
  spec.theta = config.positional_embedding_theta;
  spec.double_precision = config.double_precision_rope;
  return spec;
}

absl::StatusOr<Tensor> HalfOfHead(const Tensor& table, int64_t row) {
  LTX_ASSIGN_OR_RETURN(const Tensor half, table.Rows(row, row + 1));
  return half.Reshape({table.dim(1)});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transformer>> Transformer::Load(const TransformerConfig& config,
                                                               ModelClass model_class,
                                                               WeightLoader loader) {
  LTX_RETURN_IF_ERROR(CheckConfig(config, model_class));
  std::unique_ptr<Transformer> model(new Transformer());
  model->device_ = &loader.device();
  model->dtype_ = loader.compute_dtype();
  model->config_ = config;
  model->model_class_ = model_class;
  for (const StreamKind kind : {StreamKind::kVideo, StreamKind::kAudio}) {
    if (model->Has(kind)) LTX_RETURN_IF_ERROR(model->LoadStream(kind, loader));
  }
  if (model_class == ModelClass::kAudioVideo) LTX_RETURN_IF_ERROR(model->LoadCross(loader));
  LTX_RETURN_IF_ERROR(model->LoadBlocks(loader));
  model->IgnoreForeignTensors(loader);
  LTX_RETURN_IF_ERROR(loader.CheckAllConsumed());
  return model;
}

absl::Status Transformer::LoadStream(StreamKind kind, WeightLoader& loader) {
  const bool is_video = kind == StreamKind::kVideo;
  const std::string prefix = is_video ? "" : "audio_";
  StreamModel& model = is_video ? video_ : audio_;
  StreamConfig& stream = model.config;
  stream.heads = is_video ? config_.num_attention_heads : config_.audio_num_attention_heads;
  stream.head_dim = is_video ? config_.attention_head_dim : config_.audio_attention_head_dim;
  stream.width = stream.heads * stream.head_dim;
  stream.epsilon = static_cast<float>(config_.norm_eps);
  stream.gated_attention = config_.apply_gated_attention;
  stream.cross_attention_adaln = config_.cross_attention_adaln;
  stream.ff_bias = is_video ? config_.ff_bias : config_.audio_ff_bias;

  model.rope = BaseRope(config_);
  model.rope.width = stream.width;
  model.rope.heads = stream.heads;
  if (is_video) {
    model.rope.max_position.assign(config_.positional_embedding_max_pos.begin(),
                                   config_.positional_embedding_max_pos.end());
  } else {
    model.rope.max_position.assign(config_.audio_positional_embedding_max_pos.begin(),
                                   config_.audio_positional_embedding_max_pos.end());
  }

  const int64_t width = stream.width;
  model.in_channels = is_video ? config_.in_channels : config_.audio_in_channels;
  model.out_channels = is_video ? config_.out_channels : config_.audio_out_channels;
  LTX_ASSIGN_OR_RETURN(model.patchify, loader.Linear(absl::StrCat(prefix, "patchify_proj"),
                                                     model.in_channels, width));
  LTX_ASSIGN_OR_RETURN(model.proj_out,
                       loader.Linear(absl::StrCat(prefix, "proj_out"), width, model.out_channels));
  LTX_ASSIGN_OR_RETURN(const Tensor head,
                       loader.Get(absl::StrCat(prefix, "scale_shift_table"), {2, width}));
  LTX_ASSIGN_OR_RETURN(model.head_shift, HalfOfHead(head, 0));
  LTX_ASSIGN_OR_RETURN(model.head_scale, HalfOfHead(head, 1));
  LTX_ASSIGN_OR_RETURN(
      model.tables,
      BlockTables::Load(loader, kind, stream,
                        /*cross=*/model_class_ == ModelClass::kAudioVideo, 0, config_.num_layers));
  LTX_ASSIGN_OR_RETURN(model.adaln,
                       AdaLayerNormSingle::Load(loader.Sub(absl::StrCat(prefix, "adaln_single.")),
                                                width, stream.table_rows()));
  if (config_.cross_attention_adaln && config_.use_prompt_adaln_single) {
    LTX_ASSIGN_OR_RETURN(
        model.prompt_adaln,
        AdaLayerNormSingle::Load(loader.Sub(absl::StrCat(prefix, "prompt_adaln_single.")), width,
                                 kPromptRows));
  }
  model.context_width = width;
  if (!config_.caption_proj_before_connector) {
    model.context_width = config_.caption_channels;
    const std::string projection = absl::StrCat(prefix, "caption_projection.");
    LTX_ASSIGN_OR_RETURN(model.caption_1, loader.Linear(absl::StrCat(projection, "linear_1"),
                                                        model.context_width, width));
    LTX_ASSIGN_OR_RETURN(model.caption_2,
                         loader.Linear(absl::StrCat(projection, "linear_2"), width, width));
  }
  if (is_video && config_.use_keyframes_abs_pos_embedding &&
      loader.Has("keyframes_abs_pos_embedding")) {
    LTX_ASSIGN_OR_RETURN(const std::vector<float> bias,
                         loader.GetHost("keyframes_abs_pos_embedding", {1, width}));
    std::vector<float> rows(width, 0.0f);
    rows.insert(rows.end(), bias.begin(), bias.end());
    LTX_ASSIGN_OR_RETURN(keyframe_rows_,
                         TensorFromFloats(*device_, rows, {2, width}, dtype_, loader.owner()));
    LTX_ASSIGN_OR_RETURN(keyframe_scale_, ZeroTensor(*device_, {1, width}, dtype_, loader.owner()));
  }
  return absl::OkStatus();
}

absl::Status Transformer::LoadCross(WeightLoader& loader) {
  const float max_seconds = std::max(video_.rope.max_position[0], audio_.rope.max_position[0]);
  for (StreamModel* model : {&video_, &audio_}) {
    model->cross_rope = BaseRope(config_);
    model->cross_rope.width = config_.audio_cross_attention_dim;
    model->cross_rope.heads = model->config.heads;
    model->cross_rope.max_position = {max_seconds};
  }
  LTX_ASSIGN_OR_RETURN(video_.cross_adaln,
                       AdaLayerNormSingle::Load(loader.Sub("av_ca_video_scale_shift_adaln_single."),
                                                video_.config.width, kCrossRows));
  LTX_ASSIGN_OR_RETURN(audio_.cross_adaln,
                       AdaLayerNormSingle::Load(loader.Sub("av_ca_audio_scale_shift_adaln_single."),
                                                audio_.config.width, kCrossRows));
  LTX_ASSIGN_OR_RETURN(video_.cross_gate_adaln,
                       AdaLayerNormSingle::Load(loader.Sub("av_ca_a2v_gate_adaln_single."),
                                                video_.config.width, kGateRows));
  LTX_ASSIGN_OR_RETURN(audio_.cross_gate_adaln,
                       AdaLayerNormSingle::Load(loader.Sub("av_ca_v2a_gate_adaln_single."),
                                                audio_.config.width, kGateRows));
  return absl::OkStatus();
}

absl::Status Transformer::LoadBlocks(WeightLoader& loader) {
  const StreamConfig* const video = Has(StreamKind::kVideo) ? &video_.config : nullptr;
  const StreamConfig* const audio = Has(StreamKind::kAudio) ? &audio_.config : nullptr;
  blocks_.reserve(config_.num_layers);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    LTX_ASSIGN_OR_RETURN(
        TransformerBlock block,
        TransformerBlock::Load(loader.Sub(absl::StrCat("transformer_blocks.", i, ".")), video,
                               audio));
    blocks_.push_back(std::move(block));
  }
  return absl::OkStatus();
}

void Transformer::IgnoreForeignTensors(WeightLoader& loader) const {
  loader.Ignore("video_embeddings_connector.*");
  loader.Ignore("audio_embeddings_connector.*");
  if (model_class_ == ModelClass::kAudioVideo) return;
  loader.Ignore("av_ca_*");
  const bool video_only = model_class_ == ModelClass::kVideoOnly;
  if (video_only) {
    loader.Ignore("audio_*");
  } else {
    for (const char* name :
         {"patchify_proj.*", "adaln_single.*", "prompt_adaln_single.*", "caption_projection.*",
          "scale_shift_table", "proj_out.*", "keyframes_abs_pos_embedding"}) {
      loader.Ignore(name);
    }
  }
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    WeightLoader block = loader.Sub(absl::StrCat("transformer_blocks.", i, "."));
    block.Ignore("audio_to_video_attn.*");
    block.Ignore("video_to_audio_attn.*");
    block.Ignore("scale_shift_table_a2v_ca_*");
    if (video_only) {
      block.Ignore("audio_*");
    } else {
      for (const char* name :
           {"attn1.*", "attn2.*", "ff.*", "scale_shift_table", "prompt_scale_shift_table"}) {
        block.Ignore(name);
      }
    }
  }
}

}  // namespace ltx::dit
