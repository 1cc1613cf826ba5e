#ifndef LTX_ENGINE_VIDEO_VAE_NORM_H_
#define LTX_ENGINE_VIDEO_VAE_NORM_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// Groups of the checkpoints' group norms; a constant of the reference, not of the config.
inline constexpr int64_t kNormGroups = 32;
/// Epsilon of the group norms (the reference passes resnet_eps = 1e-6 everywhere).
inline constexpr float kGroupNormEpsilon = 1e-6f;
/// Epsilon of the pixel norm: the reference's PixelNorm has its own default, 1e-8.
inline constexpr float kPixelNormEpsilon = 1e-8f;

/// The normalisation of a residual block: over the channels of each position, without weights
/// (pixel norm), or over groups of channels and all positions of a batch row, with an affine map
/// (group norm).
class Norm {
 public:
  Norm() = default;

  /// No weights to read.
  static Norm Pixel();
  /// Reads `module`.weight and `module`.bias [channels]. INVALID_ARGUMENT if `groups` does not
  /// divide `channels`.
  static absl::StatusOr<Norm> LoadGroup(checkpoint::WeightLoader& loader, absl::string_view module,
                                        int64_t channels, int64_t groups, float epsilon);
  /// One of the two, as the config's norm_layer says.
  static absl::StatusOr<Norm> Load(checkpoint::VideoNorm layer, checkpoint::WeightLoader& loader,
                                   absl::string_view module, int64_t channels, int64_t groups,
                                   float epsilon);

  /// activation(norm(x)); x [B, T, H, W, C].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 Activation activation = Activation::kNone) const;
  /// The same as what goes before a convolution; none if a convolution cannot have it there.
  std::optional<NormConvOptions::Norm> BeforeConv(Activation activation) const;

 private:
  checkpoint::VideoNorm layer_ = checkpoint::VideoNorm::kPixelNorm;
  int64_t groups_ = 0;
  float epsilon_ = kPixelNormEpsilon;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_NORM_H_
