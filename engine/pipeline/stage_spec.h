#ifndef LTX_ENGINE_PIPELINE_STAGE_SPEC_H_
#define LTX_ENGINE_PIPELINE_STAGE_SPEC_H_

#include <cstdint>
#include <vector>

#include "engine/sampling/denoising_loop.h"
#include "engine/sampling/guiders.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "kernels/tensor.h"

namespace ltx::pipeline {

/// Latent frames that are given instead of generated (reference: conditioning/types, latent at an
/// index).
struct ReplacedFrames {
  /// [1, N, C], tokens of whole latent frames, normalised.
  Tensor tokens;
  /// The latent frame they start at.
  int64_t first_frame = 0;
  /// 1 keeps the content exactly, 0 ignores it.
  float strength = 1.0f;
};

/// What one denoising stage computes.
struct StageSpec {
  /// From 1.
  int number = 1;
  /// An absent modality has no tokens.
  sampling::VideoLatentExtents video;
  int64_t audio_tokens = 0;
  double frame_rate = 24.0;
  sampling::Sampler sampler;
  std::vector<float> sigmas;
  /// Neutral as it stands: one pass an evaluation. `batched`: all passes of an evaluation in one
  /// forward.
  sampling::PerModality<sampling::GuiderParams> guidance;
  bool batched = false;
  /// Weight of the noise in the starting point.
  float noise_scale = 1.0f;
  /// Of the distilled LoRA in the transformer; 0: the model as it is.
  double distilled_lora_strength = 0.0;
  /// Latents to start from, [1, T, C]; undefined: zeros.
  sampling::PerModality<Tensor> initial;
  /// In order; a later one overwrites what it overlaps.
  std::vector<ReplacedFrames> replaced_frames;

  int64_t tokens(sampling::Modality modality) const {
    return modality == sampling::Modality::kVideo ? video.tokens() : audio_tokens;
  }
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_STAGE_SPEC_H_
