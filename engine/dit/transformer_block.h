#ifndef LTX_ENGINE_DIT_TRANSFORMER_BLOCK_H_
#define LTX_ENGINE_DIT_TRANSFORMER_BLOCK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/attention.h"
#include "engine/dit/stream_block.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::dit {

/// One block of the audio-video transformer (reference: transformer.py, BasicAVTransformerBlock).
/// Order: self and text attention of either stream, both cross-modal attentions from the states
/// before either, feed-forward of either stream. The streams' halves run beside each other where
/// the device can.
class TransformerBlock {
 public:
  TransformerBlock() = default;
  /// `video` or `audio` may be null: a single-stream block.
  static absl::StatusOr<TransformerBlock> Load(checkpoint::WeightLoader loader,
                                               const StreamConfig* video,
                                               const StreamConfig* audio);

  /// Changes the states in place. `video` and `audio` are null for an absent stream (one without
  /// tokens counts as absent). The observer sees the inputs and outputs of every part: "attn1_in",
  /// "attn1_out", "attn2_in", "attn2_kv_in", "attn2_out", "ff_in", "ff_out", the same after
  /// "audio_", "audio_to_video_attn_in", "..._kv_in", "..._out", and "video_to_audio_attn_...";
  /// "<stream>_after_self", "_after_text", "_after_av"; and "<stream>_av_gate" as rows.
  absl::Status Forward(Device& device, const BlockInput* video, StreamState* video_state,
                       const BlockInput* audio, StreamState* audio_state,
                       const StageObserver& observer = nullptr) const;

 private:
  /// Norms of a stream's state before either cross-modal attention.
  struct Readings {
    /// What asks the other stream.
    Tensor query;
    /// What the other stream asks.
    Tensor key;
    /// Made here already if nothing arrives from the other stream.
    Tensor feed_forward;
  };
  /// One stream as cross-modal attention sees it.
  struct Side {
    const StreamBlock* block = nullptr;
    const BlockInput* input = nullptr;
    StreamState* state = nullptr;
    Readings readings;
    /// Whether anything arrives here from the other stream.
    bool receives = false;
    bool enabled() const { return input != nullptr && input->stream->enabled; }
  };

  /// Self and text attention, or for a stream that is not enabled the readings alone.
  absl::Status BeforeCross(Device& device, bool other_receives, Side* side,
                           const StageObserver& observer) const;
  /// What arrives from `other`, then the feed-forward.
  absl::Status CrossAndFeedForward(Device& device, Side* side, const Side& other,
                                   const StageObserver& observer) const;
  absl::Status CrossAttend(Device& device, Side* side, const Side& other,
                           const StageObserver& observer) const;

  StreamBlock video_;
  StreamBlock audio_;
  GatedAttention audio_to_video_;
  GatedAttention video_to_audio_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TRANSFORMER_BLOCK_H_
