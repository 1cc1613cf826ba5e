#ifndef LTX_ENGINE_PIPELINE_EFFECTIVE_PARAMETERS_H_
#define LTX_ENGINE_PIPELINE_EFFECTIVE_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/pipeline/frame_rate.h"
#include "engine/pipeline/generation_request.h"
#include "kernels/dtype.h"

namespace ltx::pipeline {

/// What a run used, so that it can be repeated elsewhere.
struct EffectiveParameters {
  Recipe recipe = Recipe::kDistilled;
  int64_t height = 0, width = 0, num_frames = 0;
  FrameRate frame_rate;
  uint64_t seed = 0;
  /// Seed of the noise added inside the ancestral loop.
  uint64_t loop_seed = 0;
  NoiseGenerator noise_generator = NoiseGenerator::kTorchCpu;
  DType noise_dtype = DType::kF32;
  /// Launch shape of the torch_cuda generator: large draws depend on it.
  int64_t noise_multiprocessors = 0, noise_threads_per_multiprocessor = 0;
  DType compute_dtype = DType::kF32;
  struct Stage {
    int64_t height = 0, width = 0;
    /// "euler" or "euler_ancestral eta=1 s_noise=1".
    std::string sampler;
    std::vector<float> sigmas;
    /// Weight of the noise in the stage's starting point.
    float noise_scale = 1.0f;
    int64_t video_tokens = 0, audio_tokens = 0;
  };
  std::vector<Stage> stages;
  /// Tokens of the prompt that were read, and tokens at its end that did not fit and had no effect.
  /// Known once the text phase has run.
  int64_t prompt_tokens = 0, dropped_prompt_tokens = 0;
  /// How the video latent is decoded: "untiled", with a remark where the reference would tile.
  std::string video_decode_layout;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_EFFECTIVE_PARAMETERS_H_
