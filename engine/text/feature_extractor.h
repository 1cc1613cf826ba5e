#ifndef LTX_ENGINE_TEXT_FEATURE_EXTRACTOR_H_
#define LTX_ENGINE_TEXT_FEATURE_EXTRACTOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/text/feature_rows.h"
#include "kernels/device.h"

namespace ltx::text {

/// Turns all hidden states of a prompt into one feature row per token and stream (reference:
/// feature_extractor.py): linear maps bring the normalised states, side by side, to the width of
/// each stream.
class FeatureExtractor {
 public:
  struct Features {
    Tensor video;  ///< [1, n, video width]
    Tensor audio;  ///< [1, n, audio width]; in form v1 the same tensor as `video`.
  };

  /// Reads `text_embedding_projection.*`. `hidden_size` and `num_states` are the tower's.
  static absl::StatusOr<FeatureExtractor> Load(const checkpoint::FeatureExtractorConfig& config,
                                               int64_t hidden_size, int64_t num_states,
                                               const checkpoint::WeightLoader& loader);

  /// For the hidden states of a prompt.
  FeatureRows StartRows() const { return {device_, form_, num_states_}; }
  /// Of rows [1, n, num_states * hidden_size] in the layout of FeatureRows.
  absl::StatusOr<Features> Project(const Tensor& rows) const;

 private:
  FeatureExtractor(checkpoint::FeatureExtractorConfig::Form form, int64_t num_states,
                   Device* device)
      : form_(form), num_states_(num_states), device_(device) {}

  checkpoint::FeatureExtractorConfig::Form form_;
  int64_t num_states_;
  Device* device_;
  LinearWeight video_;
  /// Undefined in form v1.
  LinearWeight audio_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_FEATURE_EXTRACTOR_H_
