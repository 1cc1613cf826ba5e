#include "engine/audio_vae/hann_upsampler.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/audio_vae/resampling_filters.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<HannUpsampler> HannUpsampler::Create(Device& device, int64_t ratio, int64_t channels,
                                                    MemoryOwner owner) {
  if (ratio < 1 || channels < 1) {
    return absl::InvalidArgumentError(absl::StrCat("up-sampling ratio ", ratio, " over ", channels,
                                                   " channels; both must be at least 1"));
  }
  constexpr int64_t kTaps = 2 * kHannFilterWidth + 1;
  const std::vector<float> filter = HannSincFilter(ratio);
  // Tap d of phase p weighs x[m + d - 7] in y[ratio m + p]: filter element p + ratio (14 - d),
  // which lies past the end for d = 0 of every phase but the first.
  std::vector<float> weight(ratio * channels * channels * kTaps, 0.0f);
  for (int64_t phase = 0; phase < ratio; ++phase) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      float* row = &weight[((phase * channels + channel) * channels + channel) * kTaps];
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        const int64_t index = phase + ratio * (kTaps - 1 - tap);
        if (index < static_cast<int64_t>(filter.size())) {
          row[tap] = static_cast<float>(ratio) * filter[index];
        }
      }
    }
  }
  LTX_ASSIGN_OR_RETURN(const Tensor tensor,
                       TensorFromFloats(device, weight, Shape({ratio * channels, channels, kTaps}),
                                        DType::kF32, MemoryOwner::kWorkspace));
  HannUpsampler upsampler;
  upsampler.ratio_ = ratio;
  LTX_ASSIGN_OR_RETURN(upsampler.phases_, device.PrepareConv(tensor, Tensor(), owner));
  return upsampler;
}

absl::StatusOr<Tensor> HannUpsampler::Forward(Device& device, const Tensor& x) const {
  ConvOptions options;
  options.axes[0].pad_before = kHannFilterWidth;
  options.axes[0].pad_after = kHannFilterWidth;
  options.axes[0].pad_mode = PadMode::kReplicate;
  LTX_ASSIGN_OR_RETURN(const Tensor phases, device.Conv(x, phases_, options));
  return phases.Reshape(Shape({x.dim(0), x.dim(1) * ratio_, x.dim(2)}));
}

}  // namespace ltx::audio_vae
