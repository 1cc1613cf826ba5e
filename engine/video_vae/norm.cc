#include "engine/video_vae/norm.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {

Norm Norm::Pixel() { return Norm(); }

absl::StatusOr<Norm> Norm::LoadGroup(checkpoint::WeightLoader& loader, absl::string_view module,
                                     int64_t channels, int64_t groups, float epsilon) {
  if (groups < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("video VAE: group norm ", module, " over ",
                                                   channels, " channels needs a multiple of ",
                                                   groups, " channels"));
  }
  Norm norm;
  norm.layer_ = checkpoint::VideoNorm::kGroupNorm;
  norm.groups_ = groups;
  norm.epsilon_ = epsilon;
  LTX_ASSIGN_OR_RETURN(norm.weight_,
                       loader.Get(absl::StrCat(module, ".weight"), Shape({channels})));
  LTX_ASSIGN_OR_RETURN(norm.bias_, loader.Get(absl::StrCat(module, ".bias"), Shape({channels})));
  return norm;
}

absl::StatusOr<Norm> Norm::Load(checkpoint::VideoNorm layer, checkpoint::WeightLoader& loader,
                                absl::string_view module, int64_t channels, int64_t groups,
                                float epsilon) {
  if (layer == checkpoint::VideoNorm::kPixelNorm) return Pixel();
  return LoadGroup(loader, module, channels, groups, epsilon);
}

absl::StatusOr<Tensor> Norm::Forward(Device& device, const Tensor& x, Activation activation) const {
  if (layer_ == checkpoint::VideoNorm::kPixelNorm) {
    return device.RmsNorm(x, Tensor(), epsilon_, /*one_plus_weight=*/false, activation);
  }
  GroupNormOptions options;
  options.groups = groups_;
  options.epsilon = epsilon_;
  options.activation = activation;
  return device.GroupNorm(x, weight_, bias_, options);
}

std::optional<NormConvOptions::Norm> Norm::BeforeConv(Activation activation) const {
  if (layer_ != checkpoint::VideoNorm::kPixelNorm) return std::nullopt;
  return NormConvOptions::Norm{epsilon_, activation};
}

}  // namespace ltx::video_vae
