#ifndef LTX_ENGINE_DIT_STREAM_INPUTS_H_
#define LTX_ENGINE_DIT_STREAM_INPUTS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/dit/modality.h"
#include "kernels/tensor.h"

namespace ltx::dit {

/// Everything of one stream that a forward reads, on the device.
struct StreamInputs {
  std::shared_ptr<const PreparedStream> prepared;
  bool enabled = true;
  /// [B, N, C].
  Tensor latent;
  /// [B, S, width], or [rows, S, width] with the row of each sample.
  Tensor context;
  std::vector<int32_t> context_rows;
  Tensor context_bias;
  /// i32 [B * N], 1 where the keyframe bias applies; undefined: nowhere.
  Tensor keyframe_index;
  /// Sinusoids of the distinct timesteps [U, channels], and which of them each token has (i32
  /// [B * N], undefined if there is one).
  Tensor timesteps;
  Tensor timestep_index;
  /// Sinusoids of the stream's own sigma, [1 or one per row of the context, channels], and of the
  /// other stream's, [1 or B, channels]; undefined if the model has no use for them.
  Tensor prompt_timesteps;
  Tensor gate_timesteps;
  /// Which distinct timestep each one handed in is; for observers.
  std::vector<int32_t> timestep_of;

  /// The tensors above, for what treats them alike.
  std::array<Tensor*, 8> Tensors() {
    return {&latent,    &context,        &context_bias,     &keyframe_index,
            &timesteps, &timestep_index, &prompt_timesteps, &gate_timesteps};
  }
  std::array<const Tensor*, 8> Tensors() const {
    return {&latent,    &context,        &context_bias,     &keyframe_index,
            &timesteps, &timestep_index, &prompt_timesteps, &gate_timesteps};
  }
};

/// Velocities [B, N, C] of the streams that were given: latent = x0 + sigma * velocity. Also the
/// shape of their denoised latents.
struct StreamPair {
  Tensor video;
  Tensor audio;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_STREAM_INPUTS_H_
