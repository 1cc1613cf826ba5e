#ifndef LTX_ENGINE_DIT_STREAM_BLOCK_H_
#define LTX_ENGINE_DIT_STREAM_BLOCK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/attention.h"
#include "engine/dit/block_tables.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/stream_config.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::dit {

/// What a block needs of one stream besides its state; fixed over the blocks of a forward.
struct BlockStream {
  /// [B, S, width], or a row per distinct text and which of them each sample has.
  Tensor context;
  std::vector<int32_t> context_rows;
  Tensor context_bias;
  Tensor self_bias;
  RopeTable rope;
  /// Tables of cross-modal attention; used if the other stream is present.
  RopeTable cross_rope;
  /// A stream that is not enabled keeps its state, and still feeds the other stream.
  bool enabled = true;
};

/// Which parts of a block skip which samples.
struct BlockKeepFlags {
  KeepFlags self_attention;
  /// Of the cross-modal attention that ends in this stream.
  KeepFlags cross_attention;
};

/// One stream's part in one block.
struct BlockInput {
  const BlockStream* stream = nullptr;
  BlockModulation modulation;
  /// Of the next block; undefined vectors in the last one.
  Modulation next_modulation;
  BlockKeepFlags keep;
};

/// The residual stream, changed in place from block to block.
struct StreamState {
  /// [B, N, width].
  Tensor x;
  /// Its modulated norm for the self-attention of the block to come: whatever changes x reads it at
  /// once for the part that follows, so that every change is a single pass over x. Undefined before
  /// the first block.
  Tensor self_input;
};

/// A reading to make of a state, and where to put it.
using StateReading = std::pair<NormReading, Tensor*>;

/// ResidualNorm with its results put in place.
absl::Status UpdateAndRead(Device& device, Tensor* x, const ResidualUpdate& update, float epsilon,
                           absl::Span<const StateReading> readings);

/// The half of a block that concerns one stream only. Names of weights and of observed stages carry
/// the prefix "" (video) or "audio_".
class StreamBlock {
 public:
  StreamBlock() = default;
  static absl::StatusOr<StreamBlock> Load(checkpoint::WeightLoader loader, StreamKind kind,
                                          const StreamConfig& config);

  const StreamConfig& config() const { return config_; }
  StreamKind kind() const { return kind_; }

  /// x + gated self-attention, then + text attention; takes state->self_input and makes `readings`
  /// of the result.
  absl::Status AttendSelfAndText(Device& device, const BlockInput& input, StreamState* state,
                                 absl::Span<const StateReading> readings,
                                 const StageObserver& observer) const;
  /// What FeedForward takes.
  NormReading FeedForwardReading(const BlockInput& input) const;
  /// x + gated feed-forward of `reading`; leaves the next block's self_input.
  absl::Status FeedForward(Device& device, const BlockInput& input, Tensor reading,
                           StreamState* state, const StageObserver& observer) const;

 private:
  absl::Status AttendText(Device& device, const BlockInput& input, const Tensor& reading,
                          StreamState* state, absl::Span<const StateReading> readings,
                          const StageObserver& observer) const;

  StreamConfig config_;
  StreamKind kind_ = StreamKind::kVideo;
  std::string prefix_;
  GatedAttention self_attention_;
  GatedAttention text_attention_;
  LinearWeight ff_in_;
  LinearWeight ff_out_;
};

/// The reading that self-attention takes; `modulation` is the block's main one.
NormReading SelfReading(const Modulation& modulation);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_STREAM_BLOCK_H_
