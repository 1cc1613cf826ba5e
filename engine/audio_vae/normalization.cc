#include "engine/audio_vae/normalization.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

using checkpoint::AudioNorm;

namespace {
/// Both forms, in the reference.
constexpr float kEpsilon = 1e-6f;
/// The reference's fixed group count.
constexpr int64_t kGroups = 32;
}  // namespace

absl::StatusOr<Normalization> Normalization::Load(checkpoint::WeightLoader& loader,
                                                  absl::string_view name, int64_t channels,
                                                  AudioNorm type) {
  Normalization norm;
  norm.type_ = type;
  if (type == AudioNorm::kPixel) return norm;
  if (channels % kGroups != 0) {
    return absl::FailedPreconditionError(absl::StrCat("audio VAE group norm ", name, ": ", channels,
                                                      " channels; must be a multiple of ", kGroups,
                                                      " groups"));
  }
  LTX_ASSIGN_OR_RETURN(norm.weight_, loader.Get(absl::StrCat(name, ".weight"), Shape({channels})));
  LTX_ASSIGN_OR_RETURN(norm.bias_, loader.Get(absl::StrCat(name, ".bias"), Shape({channels})));
  return norm;
}

absl::StatusOr<Tensor> Normalization::Forward(Device& device, const Tensor& x,
                                              Activation activation) const {
  if (type_ == AudioNorm::kPixel) {
    return device.RmsNorm(x, Tensor(), kEpsilon, /*one_plus_weight=*/false, activation);
  }
  GroupNormOptions options;
  options.groups = kGroups;
  options.epsilon = kEpsilon;
  options.activation = activation;
  return device.GroupNorm(x, weight_, bias_, options);
}

}  // namespace ltx::audio_vae
