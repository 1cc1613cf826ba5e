#ifndef LTX_ENGINE_DIT_TRANSFORMER_BLOCK_H_
#define LTX_ENGINE_DIT_TRANSFORMER_BLOCK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/attention.h"
#include "engine/dit/modulation.h"
#include "engine/dit/perturbations.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::dit {

/// Sizes and switches of one stream, the same in all blocks.
struct StreamConfig {
  int64_t width = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  float epsilon = 1e-6f;
  bool gated_attention = false;
  /// Text attention is modulated and gated: nine table rows instead of six, and a prompt table.
  bool cross_attention_adaln = false;
  bool ff_bias = true;

  int64_t table_rows() const { return cross_attention_adaln ? 9 : 6; }
};

/// What a block needs of one stream besides its state; fixed over the blocks of a forward.
struct BlockStream {
  /// [B, S, width].
  Tensor context;
  Tensor context_bias;
  Tensor self_bias;
  RopeTable rope;
  /// Tables of cross-modal attention; used if the other stream is present.
  RopeTable cross_rope;
  /// 9 (6) vectors per timestep: shift, scale, gate of self-attention; of the feed-forward; of
  /// text attention.
  Modulation modulation;
  /// Shift and scale of the text tokens, from the stream's own sigma. Undefined: table alone.
  Modulation prompt;
  /// Scale and shift towards audio-to-video, then towards video-to-audio.
  Modulation cross;
  /// Gate of what arrives from the other stream, from the other stream's sigma.
  Modulation cross_gate;
  /// A stream that is not enabled keeps its state, and still feeds the other stream.
  bool enabled = true;
};

/// Which parts of a block skip which samples.
struct BlockKeepFlags {
  KeepFlags self_attention;
  /// Of the cross-modal attention that ends in this stream.
  KeepFlags cross_attention;
};

/// The half of a block that concerns one stream only. Names of weights and of observed stages carry
/// the prefix "" (video) or "audio_".
class StreamBlock {
 public:
  StreamBlock() = default;
  static absl::StatusOr<StreamBlock> Load(checkpoint::WeightLoader loader,
                                          const StreamConfig& config, absl::string_view prefix);

  const StreamConfig& config() const { return config_; }

  /// x + gated self-attention, then + text attention.
  absl::StatusOr<Tensor> AttendSelfAndText(Device& device, const Tensor& x,
                                           const BlockStream& stream, const Modulation& modulation,
                                           const KeepFlags& keep,
                                           const StageObserver& observer) const;
  /// x + gated feed-forward.
  absl::StatusOr<Tensor> FeedForward(Device& device, const Tensor& x, const Modulation& modulation,
                                     const StageObserver& observer) const;
  /// The stream's modulation with this block's table added.
  absl::StatusOr<Modulation> ModulationOf(Device& device, const BlockStream& stream) const;

 private:
  absl::StatusOr<Tensor> AttendText(Device& device, const Tensor& x, const BlockStream& stream,
                                    const Modulation& modulation,
                                    const StageObserver& observer) const;

  StreamConfig config_;
  std::string prefix_;
  GatedAttention self_attention_;
  GatedAttention text_attention_;
  LinearWeight ff_in_;
  LinearWeight ff_out_;
  /// [9 (6) * width] and [2 * width].
  Tensor table_;
  Tensor prompt_table_;
};

/// One block of the audio-video transformer (reference: transformer.py, BasicAVTransformerBlock).
/// Order: self and text attention of video, of audio, both cross-modal attentions from the states
/// before either, feed-forward of video, of audio.
class TransformerBlock {
 public:
  struct States {
    /// [B, N, width]; undefined if the stream is absent.
    Tensor video;
    Tensor audio;
  };

  TransformerBlock() = default;
  /// `video` or `audio` may be null: a single-stream block.
  static absl::StatusOr<TransformerBlock> Load(checkpoint::WeightLoader loader,
                                               const StreamConfig* video,
                                               const StreamConfig* audio);

  /// `video` and `audio` are null for an absent stream (one without tokens counts as absent). The
  /// observer sees the inputs and outputs of every part: "attn1_in", "attn1_out", "attn2_in",
  /// "attn2_kv_in", "attn2_out", "ff_in", "ff_out", the same after "audio_",
  /// "audio_to_video_attn_in", "..._kv_in", "..._out", and "video_to_audio_attn_...";
  /// "<stream>_after_self", "_after_text", "_after_av"; and "<stream>_av_gate" as rows.
  absl::StatusOr<States> Forward(Device& device, States states, const BlockStream* video,
                                 const BlockKeepFlags& video_keep, const BlockStream* audio,
                                 const BlockKeepFlags& audio_keep,
                                 const StageObserver& observer = nullptr) const;

 private:
  /// This block's cross-modal vectors of one stream.
  struct CrossModulation {
    Modulation scale_shift;
    Modulation gate;
  };
  /// The learned cross-modal vectors of one stream: scale and shift rows [4 * width], gate [width].
  struct CrossTable {
    Tensor scale_shift;
    Tensor gate;
  };

  static absl::StatusOr<CrossTable> LoadCrossTable(checkpoint::WeightLoader& loader,
                                                   absl::string_view name, int64_t width);
  absl::StatusOr<CrossModulation> CrossModulationOf(Device& device, const BlockStream& stream,
                                                    const CrossTable& table) const;
  absl::StatusOr<States> CrossAttend(Device& device, const States& states, const BlockStream& video,
                                     const BlockKeepFlags& video_keep, const BlockStream& audio,
                                     const BlockKeepFlags& audio_keep,
                                     const StageObserver& observer) const;

  float epsilon_ = 1e-6f;
  StreamBlock video_;
  StreamBlock audio_;
  GatedAttention audio_to_video_;
  GatedAttention video_to_audio_;
  CrossTable video_cross_table_;
  CrossTable audio_cross_table_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TRANSFORMER_BLOCK_H_
