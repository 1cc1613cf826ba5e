#ifndef LTX_ENGINE_TEXT_FEATURE_ROWS_H_
#define LTX_ENGINE_TEXT_FEATURE_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/text_config.h"
#include "kernels/device.h"

namespace ltx::text {

/// What the feature extractor projects: a row per token, all hidden states normalised and side by
/// side (reference: feature_extractor.py). Each state is taken as soon as the tower has it, while a
/// cache may still hold it, so that nobody keeps the states themselves.
///
/// A row is [num_states, hidden_size]. The reference has the state index fastest; here the weights
/// that meet the rows are turned instead (FeatureExtractor::Load), once.
class FeatureRows {
 public:
  FeatureRows(Device* device, checkpoint::FeatureExtractorConfig::Form form, int64_t num_states)
      : device_(device), form_(form), num_states_(num_states) {}

  /// The next `state` [1, n, hidden_size], a prompt's own tokens without padding. Form v2 scales
  /// each token to unit mean square; form v1 subtracts the state's mean over all tokens and divides
  /// by an eighth of its range. INTERNAL for one too many, or of another shape than the first.
  absl::Status Add(const Tensor& state);

  /// [1, n, num_states * hidden_size]; once, after the last state. INTERNAL if some are missing.
  absl::StatusOr<Tensor> Take();

 private:
  absl::StatusOr<Tensor> CenterAndScale(const Tensor& state) const;

  Device* device_;
  checkpoint::FeatureExtractorConfig::Form form_;
  int64_t num_states_;
  int64_t added_ = 0;
  /// Form v2.
  Tensor rows_;
  /// Form v1.
  std::vector<Tensor> parts_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_FEATURE_ROWS_H_
