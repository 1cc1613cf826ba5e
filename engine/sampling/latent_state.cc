#include "engine/sampling/latent_state.h"

#include <algorithm>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {

absl::StatusOr<LatentState> GeneratedState(Device& device, const Tensor& latent) {
  LatentState state;
  state.latent = latent;
  state.clean = latent;
  const int64_t tokens = latent.dim(0) * latent.dim(1);
  state.mask.assign(tokens, 1.0f);
  LTX_ASSIGN_OR_RETURN(state.device_mask,
                       TensorFromFloats(device, state.mask, Shape{latent.dim(0), latent.dim(1)}));
  return state;
}

std::vector<float> TokenTimesteps(const std::vector<float>& mask, float sigma) {
  std::vector<float> timesteps(mask.size());
  std::transform(mask.begin(), mask.end(), timesteps.begin(),
                 [sigma](float value) { return value * sigma; });
  return timesteps;
}

absl::StatusOr<Tensor> AddNoise(Device& device, const LatentState& state, const Tensor& noise,
                                float noise_scale) {
  LTX_ASSIGN_OR_RETURN(const Tensor latent, device.Cast(state.latent, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor clean, device.Cast(state.clean, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor noise_f32, device.Cast(noise, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor mixed, device.Lerp(latent, noise_f32, noise_scale));
  LTX_ASSIGN_OR_RETURN(const Tensor masked, device.LerpTokens(clean, mixed, state.device_mask));
  return device.Cast(masked, state.latent.dtype());
}

absl::StatusOr<Tensor> PatchifyVideo(Device& device, const Tensor& latent) {
  LTX_ASSIGN_OR_RETURN(const Tensor cells, device.Permute(latent, {0, 2, 3, 4, 1}));
  return cells.Reshape(
      {latent.dim(0), latent.dim(2) * latent.dim(3) * latent.dim(4), latent.dim(1)});
}

absl::StatusOr<Tensor> UnpatchifyVideo(Device& device, const Tensor& tokens, int64_t frames,
                                       int64_t height, int64_t width) {
  LTX_ASSIGN_OR_RETURN(const Tensor cells,
                       tokens.Reshape({tokens.dim(0), frames, height, width, tokens.dim(2)}));
  return device.Permute(cells, {0, 4, 1, 2, 3});
}

}  // namespace ltx::sampling
