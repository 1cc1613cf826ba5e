#ifndef LTX_ENGINE_PIPELINE_STAGE_SPEC_H_
#define LTX_ENGINE_PIPELINE_STAGE_SPEC_H_

#include <cstdint>
#include <vector>

#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "kernels/tensor.h"

namespace ltx::pipeline {

/// What one denoising stage computes.
struct StageSpec {
  /// From 1.
  int number = 1;
  sampling::VideoLatentExtents video;
  int64_t audio_tokens = 0;
  double frame_rate = 24.0;
  sampling::Sampler sampler;
  std::vector<float> sigmas;
  /// Weight of the noise in the starting point.
  float noise_scale = 1.0f;
  /// Latents to start from, [1, T, C]; undefined: zeros.
  sampling::PerModality<Tensor> initial;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_STAGE_SPEC_H_
