#include "engine/dit/transformer_block.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/dit/table_rows.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

void Observe(const StageObserver& observer, absl::string_view prefix, absl::string_view name,
             const Tensor& tensor) {
  if (observer) observer(absl::StrCat(prefix, name), tensor);
}

/// A stream's reading for the direction that ends in `receiver`.
NormReading CrossReading(const BlockInput& input, StreamKind receiver) {
  const Modulation& cross = input.modulation.cross;
  if (receiver == StreamKind::kVideo) {
    return {cross.At(kAudioToVideoScale), cross.At(kAudioToVideoShift)};
  }
  return {cross.At(kVideoToAudioScale), cross.At(kVideoToAudioShift)};
}

StreamKind OtherThan(StreamKind kind) {
  return kind == StreamKind::kVideo ? StreamKind::kAudio : StreamKind::kVideo;
}

/// Tables of the batch rows of a run; tables of batch 1 serve all.
absl::StatusOr<RopeTable> BatchRows(const RopeTable& table, const BatchRun& run) {
  if (!table.defined() || table.cos.dim(0) == 1) return table;
  RopeTable rows = table;
  LTX_ASSIGN_OR_RETURN(rows.cos, table.cos.Rows(run.begin, run.end));
  LTX_ASSIGN_OR_RETURN(rows.sin, table.sin.Rows(run.begin, run.end));
  return rows;
}

}  // namespace

absl::StatusOr<TransformerBlock> TransformerBlock::Load(checkpoint::WeightLoader loader,
                                                        const StreamConfig* video,
                                                        const StreamConfig* audio) {
  TransformerBlock block;
  if (video != nullptr) {
    LTX_ASSIGN_OR_RETURN(block.video_, StreamBlock::Load(loader, StreamKind::kVideo, *video));
  }
  if (audio != nullptr) {
    LTX_ASSIGN_OR_RETURN(block.audio_, StreamBlock::Load(loader, StreamKind::kAudio, *audio));
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
  return block;
}

absl::Status TransformerBlock::BeforeCross(Device& device, bool other_receives, Side* side,
                                           const StageObserver& observer) const {
  if (side->input == nullptr) return absl::OkStatus();
  const BlockInput& input = *side->input;
  const StreamKind kind = side->block->kind();
  std::vector<StateReading> readings;
  if (side->receives) readings.push_back({CrossReading(input, kind), &side->readings.query});
  if (other_receives) {
    readings.push_back({CrossReading(input, OtherThan(kind)), &side->readings.key});
  }
  if (side->enabled()) {
    if (!side->receives) {
      readings.push_back({side->block->FeedForwardReading(input), &side->readings.feed_forward});
    }
    return side->block->AttendSelfAndText(device, input, side->state, readings, observer);
  }
  if (readings.empty()) return absl::OkStatus();
  return UpdateAndRead(device, &side->state->x, {}, side->block->config().epsilon, readings);
}

absl::Status TransformerBlock::CrossAttend(Device& device, Side* side, const Side& other,
                                           const StageObserver& observer) const {
  const bool to_video = side->block->kind() == StreamKind::kVideo;
  const absl::string_view name = to_video ? "audio_to_video_attn" : "video_to_audio_attn";
  const BlockInput& input = *side->input;
  const Modulation& gate = input.modulation.cross_gate;
  Observe(observer, StreamName(side->block->kind()), "_av_gate", gate.vectors.rows);
  Observe(observer, name, "_in", side->readings.query);
  Observe(observer, name, "_kv_in", other.readings.key);
  const int64_t batch = side->readings.query.dim(0);
  const float epsilon = side->block->config().epsilon;
  const std::vector<BatchRun> runs = RunsOf(input.keep.cross_attention, batch);
  const StateReading feed_forward = {side->block->FeedForwardReading(input),
                                     &side->readings.feed_forward};
  int64_t left = 0;
  for (const BatchRun& run : runs) left += run.kept ? 1 : 0;
  for (const BatchRun& run : runs) {
    // Samples that skip the part take no part in it.
    if (!run.kept) continue;
    AttentionInputs inputs;
    LTX_ASSIGN_OR_RETURN(inputs.x, side->readings.query.Rows(run.begin, run.end));
    LTX_ASSIGN_OR_RETURN(inputs.context, other.readings.key.Rows(run.begin, run.end));
    LTX_ASSIGN_OR_RETURN(inputs.rope, BatchRows(input.stream->cross_rope, run));
    LTX_ASSIGN_OR_RETURN(inputs.key_rope, BatchRows(other.input->stream->cross_rope, run));
    const GatedAttention& attention = to_video ? audio_to_video_ : video_to_audio_;
    ResidualUpdate update;
    LTX_ASSIGN_OR_RETURN(update.value, attention.Forward(device, std::move(inputs)));
    if (runs.size() == 1) Observe(observer, name, "_out", update.value);
    update.first_batch = run.begin;
    LTX_ASSIGN_OR_RETURN(update.gate, OfBatchRows(gate.At(0), batch, run.begin, run.end));
    // The state is complete, and read, with the last run.
    std::vector<StateReading> readings;
    if (--left == 0) readings.push_back(feed_forward);
    LTX_RETURN_IF_ERROR(UpdateAndRead(device, &side->state->x, update, epsilon, readings));
  }
  return absl::OkStatus();
}

absl::Status TransformerBlock::CrossAndFeedForward(Device& device, Side* side, const Side& other,
                                                   const StageObserver& observer) const {
  if (side->input == nullptr) return absl::OkStatus();
  if (side->receives) LTX_RETURN_IF_ERROR(CrossAttend(device, side, other, observer));
  if (other.input != nullptr) {
    Observe(observer, StreamName(side->block->kind()), "_after_av", side->state->x);
  }
  if (!side->enabled()) return absl::OkStatus();
  side->readings.query = Tensor();
  return side->block->FeedForward(device, *side->input,
                                  std::exchange(side->readings.feed_forward, Tensor()), side->state,
                                  observer);
}

absl::Status TransformerBlock::Forward(Device& device, const BlockInput* video,
                                       StreamState* video_state, const BlockInput* audio,
                                       StreamState* audio_state,
                                       const StageObserver& observer) const {
  Side video_side;
  video_side.block = &video_;
  video_side.input = video;
  video_side.state = video_state;
  Side audio_side;
  audio_side.block = &audio_;
  audio_side.input = audio;
  audio_side.state = audio_state;
  const bool both = video != nullptr && audio != nullptr;
  for (Side* side : {&video_side, &audio_side}) {
    side->receives = both && side->enabled() && !side->input->keep.cross_attention.all_skipped;
  }
  const auto beside = [&](auto for_video, auto for_audio) -> absl::Status {
    if (both && !observer) return device.Concurrently(for_video, for_audio);
    LTX_RETURN_IF_ERROR(for_video());
    return for_audio();
  };
  LTX_RETURN_IF_ERROR(
      beside([&] { return BeforeCross(device, audio_side.receives, &video_side, observer); },
             [&] { return BeforeCross(device, video_side.receives, &audio_side, observer); }));
  return beside([&] { return CrossAndFeedForward(device, &video_side, audio_side, observer); },
                [&] { return CrossAndFeedForward(device, &audio_side, video_side, observer); });
}

}  // namespace ltx::dit
