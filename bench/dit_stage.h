#ifndef LTX_BENCH_DIT_STAGE_H_
#define LTX_BENCH_DIT_STAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/stage.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/dit/transformer.h"
#include "kernels/device.h"

namespace ltx::bench {

/// Inputs of random values for forwards of one size.
class DitInputs {
 public:
  /// One to four guidance passes in one batch: with the prompt; without it; with self-attention
  /// skipped in one block; without cross-modal attention. Tokens take turns among the noise levels,
  /// as conditioning makes them.
  static absl::StatusOr<DitInputs> Make(const dit::Transformer& transformer, const StageSize& size);

  absl::StatusOr<dit::StreamPair> Forward(const dit::Transformer& transformer) const {
    return transformer.Forward(&video_, &audio_, perturbations_);
  }

 private:
  dit::Modality video_;
  dit::Modality audio_;
  dit::BatchPerturbations perturbations_;
};

/// All matrix products and attentions of one pass and nothing else, recorded where the device can:
/// what a forward would take if all the rest were free. Weights are those of two blocks in turn, so
/// that they come from memory and not from a cache.
class DitFloor {
 public:
  static absl::StatusOr<DitFloor> Make(Device& device, const checkpoint::TransformerConfig& config,
                                       const StageSize& size, DType dtype);
  absl::Status Run();

 private:
  struct Block;
  absl::Status Issue() const;
  absl::Status Attend(const Columns& q, const Columns& k, const Columns& v,
                      const LinearWeight& out) const;

  Device* device_ = nullptr;
  checkpoint::TransformerConfig config_;
  /// [1, tokens, width] of either stream and of its text.
  Tensor video_, audio_, video_text_, audio_text_;
  std::vector<std::shared_ptr<const Block>> blocks_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace ltx::bench

#endif  // LTX_BENCH_DIT_STAGE_H_
