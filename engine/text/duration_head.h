#ifndef LTX_ENGINE_TEXT_DURATION_HEAD_H_
#define LTX_ENGINE_TEXT_DURATION_HEAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::text {

/// Predicts from a prompt's contexts how long a clip should be (LTX-2.5). Learned queries attend
/// over the tokens of both streams; a small perceptron gives the logarithm of the seconds.
class DurationHead {
 public:
  /// `loader` stands at "duration_head.". NOT_FOUND or INVALID_ARGUMENT names the tensor that is
  /// missing, misshapen or not accounted for by the config.
  static absl::StatusOr<DurationHead> Load(const checkpoint::DurationHeadConfig& config,
                                           checkpoint::WeightLoader loader);

  /// Contexts [1, S, width] of one prompt; either may be undefined, not both. In bf16 the result is
  /// as coarse as that type (1/32 s steps from 4 s on), which is what the reference gives.
  ///
  /// Stages: "tokens" [1, all tokens, h], "pooled" [1, queries, h].
  absl::StatusOr<float> PredictSeconds(const Tensor& video, const Tensor& audio,
                                       const StageObserver& observer = {}) const;

 private:
  struct Stream {
    LinearWeight projection;
    /// [h], tells the streams apart.
    Tensor embedding;
  };

  DurationHead(const checkpoint::DurationHeadConfig& config, Device* device)
      : config_(config), device_(device) {}

  absl::StatusOr<Stream> LoadStream(absl::string_view name, int64_t width,
                                    checkpoint::WeightLoader* loader) const;
  absl::StatusOr<Tensor> Tokens(const Tensor& video, const Tensor& audio) const;
  absl::StatusOr<Tensor> Pool(const Tensor& tokens) const;

  checkpoint::DurationHeadConfig config_;
  Device* device_;
  Stream video_, audio_;
  /// [1, queries, h].
  Tensor queries_;
  LinearWeight q_, k_, v_, out_;
  LinearWeight hidden_, seconds_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_DURATION_HEAD_H_
