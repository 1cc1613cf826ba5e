#include "engine/dit/transformer_block.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// Rows of a block's modulation table. Shift comes before scale here.
enum ModulationRow : int64_t {
  kSelfShift,
  kSelfScale,
  kSelfGate,
  kFeedForwardShift,
  kFeedForwardScale,
  kFeedForwardGate,
  kTextShift,
  kTextScale,
  kTextGate,
};

/// Rows of the prompt table.
enum PromptRow : int64_t { kPromptShift, kPromptScale, kPromptRows };

/// Rows of a cross-modal table. Scale comes before shift here; the gate is kept apart.
enum CrossRow : int64_t {
  kAudioToVideoScale,
  kAudioToVideoShift,
  kVideoToAudioScale,
  kVideoToAudioShift,
  kCrossScaleShiftRows,
};

/// Hidden width of the feed-forward over the stream's width; no config key holds it.
constexpr int64_t kFeedForwardExpansion = 4;

void Observe(const StageObserver& observer, absl::string_view prefix, absl::string_view name,
             const Tensor& tensor) {
  if (observer) observer(absl::StrCat(prefix, name), tensor);
}

/// "video" or "audio" for stages that name the stream.
absl::string_view StreamName(absl::string_view prefix) {
  return prefix.empty() ? "video" : "audio";
}

}  // namespace

absl::StatusOr<StreamBlock> StreamBlock::Load(checkpoint::WeightLoader loader,
                                              const StreamConfig& config,
                                              absl::string_view prefix) {
  StreamBlock block;
  block.config_ = config;
  block.prefix_.assign(prefix.data(), prefix.size());
  AttentionConfig attention;
  attention.query_dim = config.width;
  attention.context_dim = config.width;
  attention.heads = config.heads;
  attention.head_dim = config.head_dim;
  attention.epsilon = config.epsilon;
  attention.gated = config.gated_attention;
  LTX_ASSIGN_OR_RETURN(block.self_attention_,
                       GatedAttention::Load(loader.Sub(absl::StrCat(prefix, "attn1.")), attention));
  LTX_ASSIGN_OR_RETURN(block.text_attention_,
                       GatedAttention::Load(loader.Sub(absl::StrCat(prefix, "attn2.")), attention));
  const int64_t hidden = kFeedForwardExpansion * config.width;
  LTX_ASSIGN_OR_RETURN(block.ff_in_, loader.Linear(absl::StrCat(prefix, "ff.net.0.proj"),
                                                   config.width, hidden, config.ff_bias));
  LTX_ASSIGN_OR_RETURN(block.ff_out_, loader.Linear(absl::StrCat(prefix, "ff.net.2"), hidden,
                                                    config.width, config.ff_bias));
  const int64_t rows = config.table_rows();
  LTX_ASSIGN_OR_RETURN(const Tensor table,
                       loader.Get(absl::StrCat(prefix, "scale_shift_table"), {rows, config.width}));
  LTX_ASSIGN_OR_RETURN(block.table_, table.Reshape({rows * config.width}));
  if (config.cross_attention_adaln) {
    LTX_ASSIGN_OR_RETURN(
        const Tensor prompt_table,
        loader.Get(absl::StrCat(prefix, "prompt_scale_shift_table"), {kPromptRows, config.width}));
    LTX_ASSIGN_OR_RETURN(block.prompt_table_, prompt_table.Reshape({kPromptRows * config.width}));
  }
  return block;
}

absl::StatusOr<Modulation> StreamBlock::ModulationOf(Device& device,
                                                     const BlockStream& stream) const {
  return AddTable(device, stream.modulation, table_, config_.width);
}

absl::StatusOr<Tensor> StreamBlock::AttendSelfAndText(Device& device, const Tensor& x,
                                                      const BlockStream& stream,
                                                      const Modulation& modulation,
                                                      const KeepFlags& keep,
                                                      const StageObserver& observer) const {
  AttentionInputs inputs;
  LTX_ASSIGN_OR_RETURN(inputs.x,
                       device.RmsNormModulate(x, config_.epsilon, modulation.At(kSelfScale),
                                              modulation.At(kSelfShift)));
  Observe(observer, prefix_, "attn1_in", inputs.x);
  inputs.bias = stream.self_bias;
  inputs.rope = stream.rope;
  inputs.keep = keep;
  LTX_ASSIGN_OR_RETURN(const Tensor attended, self_attention_.Forward(device, inputs));
  Observe(observer, prefix_, "attn1_out", attended);
  LTX_ASSIGN_OR_RETURN(const Tensor state, device.AddGated(x, attended, modulation.At(kSelfGate)));
  Observe(observer, StreamName(prefix_), "_after_self", state);
  return AttendText(device, state, stream, modulation, observer);
}

absl::StatusOr<Tensor> StreamBlock::AttendText(Device& device, const Tensor& x,
                                               const BlockStream& stream,
                                               const Modulation& modulation,
                                               const StageObserver& observer) const {
  AttentionInputs inputs;
  inputs.bias = stream.context_bias;
  if (config_.cross_attention_adaln) {
    LTX_ASSIGN_OR_RETURN(const Modulation prompt,
                         AddTable(device, stream.prompt, prompt_table_, config_.width));
    LTX_ASSIGN_OR_RETURN(inputs.x,
                         device.RmsNormModulate(x, config_.epsilon, modulation.At(kTextScale),
                                                modulation.At(kTextShift)));
    LTX_ASSIGN_OR_RETURN(inputs.context, device.Modulate(stream.context, prompt.At(kPromptScale),
                                                         prompt.At(kPromptShift)));
  } else {
    LTX_ASSIGN_OR_RETURN(inputs.x, device.RmsNorm(x, Tensor(), config_.epsilon));
    inputs.context = stream.context;
  }
  Observe(observer, prefix_, "attn2_in", inputs.x);
  Observe(observer, prefix_, "attn2_kv_in", inputs.context);
  LTX_ASSIGN_OR_RETURN(const Tensor attended, text_attention_.Forward(device, inputs));
  Observe(observer, prefix_, "attn2_out", attended);
  Tensor state;
  if (config_.cross_attention_adaln) {
    LTX_ASSIGN_OR_RETURN(state, device.AddGated(x, attended, modulation.At(kTextGate)));
  } else {
    LTX_ASSIGN_OR_RETURN(state, device.Add(x, attended));
  }
  Observe(observer, StreamName(prefix_), "_after_text", state);
  return state;
}

absl::StatusOr<Tensor> StreamBlock::FeedForward(Device& device, const Tensor& x,
                                                const Modulation& modulation,
                                                const StageObserver& observer) const {
  LTX_ASSIGN_OR_RETURN(const Tensor input,
                       device.RmsNormModulate(x, config_.epsilon, modulation.At(kFeedForwardScale),
                                              modulation.At(kFeedForwardShift)));
  Observe(observer, prefix_, "ff_in", input);
  LinearOptions gelu;
  gelu.activation = Activation::kGeluTanh;
  LTX_ASSIGN_OR_RETURN(const Tensor hidden, device.Linear(input, ff_in_, gelu));
  LTX_ASSIGN_OR_RETURN(const Tensor output, device.Linear(hidden, ff_out_));
  Observe(observer, prefix_, "ff_out", output);
  return device.AddGated(x, output, modulation.At(kFeedForwardGate));
}

absl::StatusOr<TransformerBlock::CrossTable> TransformerBlock::LoadCrossTable(
    checkpoint::WeightLoader& loader, absl::string_view name, int64_t width) {
  LTX_ASSIGN_OR_RETURN(const Tensor table, loader.Get(name, {kCrossScaleShiftRows + 1, width}));
  LTX_ASSIGN_OR_RETURN(const Tensor scale_shift, table.Rows(0, kCrossScaleShiftRows));
  LTX_ASSIGN_OR_RETURN(const Tensor gate,
                       table.Rows(kCrossScaleShiftRows, kCrossScaleShiftRows + 1));
  CrossTable cross;
  LTX_ASSIGN_OR_RETURN(cross.scale_shift, scale_shift.Reshape({kCrossScaleShiftRows * width}));
  LTX_ASSIGN_OR_RETURN(cross.gate, gate.Reshape({width}));
  return cross;
}

absl::StatusOr<TransformerBlock> TransformerBlock::Load(checkpoint::WeightLoader loader,
                                                        const StreamConfig* video,
                                                        const StreamConfig* audio) {
  TransformerBlock block;
  if (video != nullptr) {
    block.epsilon_ = video->epsilon;
    LTX_ASSIGN_OR_RETURN(block.video_, StreamBlock::Load(loader, *video, ""));
  }
  if (audio != nullptr) {
    block.epsilon_ = audio->epsilon;
    LTX_ASSIGN_OR_RETURN(block.audio_, StreamBlock::Load(loader, *audio, "audio_"));
  }
  if (video == nullptr || audio == nullptr) return block;

  // Both directions work at the audio stream's inner width.
  AttentionConfig attention;
  attention.heads = audio->heads;
  attention.head_dim = audio->head_dim;
  attention.epsilon = audio->epsilon;
  attention.gated = audio->gated_attention;
  attention.query_dim = video->width;
  attention.context_dim = audio->width;
  LTX_ASSIGN_OR_RETURN(block.audio_to_video_,
                       GatedAttention::Load(loader.Sub("audio_to_video_attn."), attention));
  attention.query_dim = audio->width;
  attention.context_dim = video->width;
  LTX_ASSIGN_OR_RETURN(block.video_to_audio_,
                       GatedAttention::Load(loader.Sub("video_to_audio_attn."), attention));
  LTX_ASSIGN_OR_RETURN(block.video_cross_table_,
                       LoadCrossTable(loader, "scale_shift_table_a2v_ca_video", video->width));
  LTX_ASSIGN_OR_RETURN(block.audio_cross_table_,
                       LoadCrossTable(loader, "scale_shift_table_a2v_ca_audio", audio->width));
  return block;
}

absl::StatusOr<TransformerBlock::CrossModulation> TransformerBlock::CrossModulationOf(
    Device& device, const BlockStream& stream, const CrossTable& table) const {
  CrossModulation cross;
  const int64_t width = table.gate.num_elements();
  LTX_ASSIGN_OR_RETURN(cross.scale_shift, AddTable(device, stream.cross, table.scale_shift, width));
  LTX_ASSIGN_OR_RETURN(cross.gate, AddTable(device, stream.cross_gate, table.gate, width));
  return cross;
}

absl::StatusOr<TransformerBlock::States> TransformerBlock::CrossAttend(
    Device& device, const States& states, const BlockStream& video,
    const BlockKeepFlags& video_keep, const BlockStream& audio, const BlockKeepFlags& audio_keep,
    const StageObserver& observer) const {
  const bool to_video = video.enabled && !video_keep.cross_attention.all_skipped;
  const bool to_audio = audio.enabled && !audio_keep.cross_attention.all_skipped;
  States result = states;
  if (!to_video && !to_audio) return result;
  LTX_ASSIGN_OR_RETURN(const CrossModulation video_cross,
                       CrossModulationOf(device, video, video_cross_table_));
  LTX_ASSIGN_OR_RETURN(const CrossModulation audio_cross,
                       CrossModulationOf(device, audio, audio_cross_table_));

  // One direction: `query` and `key` are the states before either direction.
  const auto attend =
      [&](absl::string_view name, const GatedAttention& attention, const Tensor& query,
          const CrossModulation& query_cross, const RopeTable& query_rope, const Tensor& key,
          const CrossModulation& key_cross, const RopeTable& key_rope, int64_t scale_row,
          int64_t shift_row, const KeepFlags& keep) -> absl::StatusOr<Tensor> {
    AttentionInputs inputs;
    LTX_ASSIGN_OR_RETURN(
        inputs.x, device.RmsNormModulate(query, epsilon_, query_cross.scale_shift.At(scale_row),
                                         query_cross.scale_shift.At(shift_row)));
    LTX_ASSIGN_OR_RETURN(inputs.context,
                         device.RmsNormModulate(key, epsilon_, key_cross.scale_shift.At(scale_row),
                                                key_cross.scale_shift.At(shift_row)));
    Observe(observer, name, "_in", inputs.x);
    Observe(observer, name, "_kv_in", inputs.context);
    inputs.rope = query_rope;
    inputs.key_rope = key_rope;
    LTX_ASSIGN_OR_RETURN(Tensor attended, attention.Forward(device, inputs));
    Observe(observer, name, "_out", attended);
    if (!keep.all_kept()) {
      LTX_ASSIGN_OR_RETURN(attended, device.BlendBatch(attended, Tensor(), keep.weights));
    }
    return device.AddGated(query, attended, query_cross.gate.At(0));
  };
  if (to_video) {
    Observe(observer, "video", "_av_gate", video_cross.gate.vectors.rows);
    LTX_ASSIGN_OR_RETURN(
        result.video, attend("audio_to_video_attn", audio_to_video_, states.video, video_cross,
                             video.cross_rope, states.audio, audio_cross, audio.cross_rope,
                             kAudioToVideoScale, kAudioToVideoShift, video_keep.cross_attention));
  }
  if (to_audio) {
    Observe(observer, "audio", "_av_gate", audio_cross.gate.vectors.rows);
    LTX_ASSIGN_OR_RETURN(
        result.audio, attend("video_to_audio_attn", video_to_audio_, states.audio, audio_cross,
                             audio.cross_rope, states.video, video_cross, video.cross_rope,
                             kVideoToAudioScale, kVideoToAudioShift, audio_keep.cross_attention));
  }
  return result;
}

absl::StatusOr<TransformerBlock::States> TransformerBlock::Forward(
    Device& device, States states, const BlockStream* video, const BlockKeepFlags& video_keep,
    const BlockStream* audio, const BlockKeepFlags& audio_keep,
    const StageObserver& observer) const {
  const bool run_video = video != nullptr && video->enabled;
  const bool run_audio = audio != nullptr && audio->enabled;
  Modulation video_modulation;
  Modulation audio_modulation;
  if (run_video) {
    LTX_ASSIGN_OR_RETURN(video_modulation, video_.ModulationOf(device, *video));
    LTX_ASSIGN_OR_RETURN(states.video,
                         video_.AttendSelfAndText(device, states.video, *video, video_modulation,
                                                  video_keep.self_attention, observer));
  }
  if (run_audio) {
    LTX_ASSIGN_OR_RETURN(audio_modulation, audio_.ModulationOf(device, *audio));
    LTX_ASSIGN_OR_RETURN(states.audio,
                         audio_.AttendSelfAndText(device, states.audio, *audio, audio_modulation,
                                                  audio_keep.self_attention, observer));
  }
  if (video != nullptr && audio != nullptr) {
    LTX_ASSIGN_OR_RETURN(
        states, CrossAttend(device, states, *video, video_keep, *audio, audio_keep, observer));
    Observe(observer, "video", "_after_av", states.video);
    Observe(observer, "audio", "_after_av", states.audio);
  }
  if (run_video) {
    LTX_ASSIGN_OR_RETURN(states.video,
                         video_.FeedForward(device, states.video, video_modulation, observer));
  }
  if (run_audio) {
    LTX_ASSIGN_OR_RETURN(states.audio,
                         audio_.FeedForward(device, states.audio, audio_modulation, observer));
  }
  return states;
}

}  // namespace ltx::dit
