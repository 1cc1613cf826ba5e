#ifndef LTX_ENGINE_TEXT_FEATURE_EXTRACTOR_H_
#define LTX_ENGINE_TEXT_FEATURE_EXTRACTOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::text {

/// Turns all hidden states of a prompt into one feature row per token and stream (reference:
/// feature_extractor.py). Every state is normalised, the states are laid side by side with the
/// state index fastest, and linear maps bring the result to the width of each stream.
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

  /// `states` [1, n, hidden_size], a prompt's own tokens without padding, in the tower's order.
  absl::StatusOr<Features> Forward(absl::Span<const Tensor> states) const;

  /// The two halves of Forward. Normalize gives [1, n, hidden_size * num_states]: form v2 scales
  /// each token of each state to unit mean square (the factor of each stream is in its weights);
  /// form v1 subtracts a state's mean over all tokens and divides by an eighth of its range.
  absl::StatusOr<Tensor> Normalize(absl::Span<const Tensor> states) const;
  absl::StatusOr<Features> Project(const Tensor& normalized) const;

 private:
  FeatureExtractor(const checkpoint::FeatureExtractorConfig& config, int64_t hidden_size,
                   int64_t num_states, Device* device)
      : config_(config), hidden_size_(hidden_size), num_states_(num_states), device_(device) {}

  absl::StatusOr<Tensor> CenterAndScale(const Tensor& state) const;

  checkpoint::FeatureExtractorConfig config_;
  int64_t hidden_size_;
  int64_t num_states_;
  Device* device_;
  LinearWeight video_;
  /// Undefined in form v1.
  LinearWeight audio_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_FEATURE_EXTRACTOR_H_
