#ifndef LTX_ENGINE_DIT_MODALITY_H_
#define LTX_ENGINE_DIT_MODALITY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/dit/attention_bias.h"
#include "kernels/op_types.h"
#include "kernels/tensor.h"

namespace ltx::dit {

enum class StreamKind : uint8_t { kVideo, kAudio };

/// "video" or "audio", as in names of fields and stages.
constexpr absl::string_view StreamName(StreamKind kind) {
  return kind == StreamKind::kVideo ? "video" : "audio";
}

/// What is known of a token stream before its first step and stays fixed over the steps of a stage.
struct StreamLayout {
  /// 1 serves forwards of any batch: guidance passes share positions.
  int64_t batch = 1;
  int64_t tokens = 0;
  /// [batch, axes, tokens, 2]: interval starts and ends. Video axes: time in seconds, row and
  /// column in pixels; audio: time in seconds.
  std::vector<float> positions;
  std::optional<AttentionMask> attention_mask;
  /// [batch, tokens] or empty; video only. A token above zero holds a single pixel frame: the first
  /// latent frame of the target, and generated keyframe slots. Such tokens get a learned bias if
  /// the model has one.
  std::vector<float> keyframes_mask;
  /// The mask marks generated keyframe slots, which mean nothing to a model without that bias.
  bool has_keyframe_slots = false;

  friend bool operator==(const StreamLayout& a, const StreamLayout& b) {
    return a.batch == b.batch && a.tokens == b.tokens && a.positions == b.positions &&
           a.attention_mask == b.attention_mask && a.keyframes_mask == b.keyframes_mask &&
           a.has_keyframe_slots == b.has_keyframe_slots;
  }
};

/// A layout on the device: rotary tables and masks, made once by Transformer::Prepare.
struct PreparedStream {
  StreamKind kind = StreamKind::kVideo;
  /// The same for equal layouts, in this process; differs for others almost certainly.
  uint64_t fingerprint = 0;
  int64_t batch = 1;
  int64_t tokens = 0;
  RopeTable rope;
  /// Defined in audio-video models.
  RopeTable cross_rope;
  Tensor self_bias;
  /// [batch * tokens], 1 where the keyframe bias applies; empty if nowhere.
  std::vector<int32_t> keyframe_index;
};

/// One stream's input to one forward (reference: modality.py, Modality).
struct Modality {
  std::shared_ptr<const PreparedStream> prepared;
  /// [B, N, C] in the model's dtype.
  Tensor latent;
  /// The noise level of the stream: one value, or one per batch row. Zero for a frozen stream.
  std::vector<float> sigma;
  /// sigma * denoise mask: one value per batch row, or one per token [B * N].
  std::vector<float> timesteps;
  /// Text tokens [B, S, D] in the model's dtype, or of the caption width if the model projects
  /// captions itself.
  Tensor context;
  /// [B]: the row of `context` that each sample has, for guidance passes that share a prompt: its
  /// keys and values are then made once. Empty: one row per sample. Samples that share a row must
  /// have the same sigma.
  std::vector<int32_t> context_rows;
  std::optional<ContextMask> context_mask;
  /// A stream that is not enabled is not updated; it still feeds the other one.
  bool enabled = true;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_MODALITY_H_
