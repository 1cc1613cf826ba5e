#ifndef LTX_ENGINE_TEXT_EMBEDDINGS_CONNECTOR_H_
#define LTX_ENGINE_TEXT_EMBEDDINGS_CONNECTOR_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::text {

/// A small bidirectional transformer that turns a prompt's feature rows into the fixed-length
/// context of one stream (reference: embeddings_connector.py). Rows that the prompt does not fill
/// hold learned registers, so cross-attention later sees a full, unmasked context.
///
/// Thread-compatible: the rotary tables are cached by length inside.
class EmbeddingsConnector {
 public:
  /// Registers repeat with this period: row p without a token holds register p mod 128.
  static constexpr int64_t kNumRegisters = 128;

  /// `loader` stands at the connector's own prefix. A tensor that the config has no use for is
  /// refused like a missing one: flags and file contradict each other then.
  static absl::StatusOr<EmbeddingsConnector> Load(const checkpoint::ConnectorConfig& config,
                                                  checkpoint::WeightLoader loader);

  /// `features` [1, n, D], the tokens of one prompt in order, -> context [1, length, D]. `length`
  /// is a multiple of 128 and at least n, else INVALID_ARGUMENT.
  ///
  /// Stages: "with_registers" [1, length, D], "rope_cos" and "rope_sin" (split
  /// [1, H, length, d / 2], interleaved [1, length, D]), "block<i>" [1, length, D].
  absl::StatusOr<Tensor> Forward(const Tensor& features, int64_t length,
                                 const StageObserver& observer = {});

  /// Builds the rotary tables of this length, if they are not there yet. Called at load, it makes
  /// the first prompt hold no more memory than later ones.
  absl::Status PrepareLength(int64_t length) { return Rope(length).status(); }

  const checkpoint::ConnectorConfig& config() const { return config_; }

 private:
  struct Block {
    LinearWeight q, k, v, out;
    Tensor q_norm, k_norm;
    /// Undefined without gated attention.
    LinearWeight gate;
    LinearWeight ff_in, ff_out;
  };

  EmbeddingsConnector(const checkpoint::ConnectorConfig& config, Device* device, DType dtype)
      : config_(config), device_(device), dtype_(dtype) {}

  absl::StatusOr<Block> LoadBlock(checkpoint::WeightLoader loader) const;
  absl::StatusOr<RopeTable> Rope(int64_t length);
  absl::StatusOr<Tensor> AppendRegisters(const Tensor& features, int64_t length) const;
  absl::StatusOr<Tensor> Attend(const Block& block, const Tensor& x, const RopeTable& rope) const;
  absl::StatusOr<Tensor> RunBlock(const Block& block, Tensor x, const RopeTable& rope) const;

  checkpoint::ConnectorConfig config_;
  Device* device_;
  DType dtype_;
  Tensor registers_;
  std::vector<Block> blocks_;
  std::map<int64_t, RopeTable> ropes_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_EMBEDDINGS_CONNECTOR_H_
