#ifndef LTX_ENGINE_PIPELINE_EFFECTIVE_PARAMETERS_H_
#define LTX_ENGINE_PIPELINE_EFFECTIVE_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/frame_rate.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/recipe.h"
#include "engine/sampling/guiders.h"
#include "engine/sampling/latent_state.h"
#include "kernels/dtype.h"

namespace ltx::pipeline {

/// What a run used, so that it can be repeated elsewhere.
struct EffectiveParameters {
  Recipe recipe = Recipe::kDistilled;
  /// The defaults that open fields were filled from, e.g. "ltx-2.4".
  std::string parameter_set;
  /// Sizes are 0 without a picture. With an automatic duration num_frames is the largest possible
  /// count until the text phase has run.
  int64_t height = 0, width = 0, num_frames = 0;
  FrameRate frame_rate;
  uint64_t seed = 0;
  /// Seed of the noise added inside the loops that add any.
  uint64_t loop_seed = 0;
  bool has_video = true, has_audio = true;
  /// Guided recipes only: what the first stage is steered by.
  struct Guidance {
    int64_t num_inference_steps = 0;
    std::string negative_prompt;
    sampling::PerModality<sampling::GuiderParams> settings;
    /// Whether the passes of an evaluation are rows of one batch; else they follow each other.
    bool batched = false;
  };
  std::optional<Guidance> guidance;
  /// Seconds that the duration head predicted, before clamping. Known once the text phase has run.
  std::optional<double> predicted_seconds;
  /// Of a prompt that the text model rewrites.
  struct Enhancement {
    int64_t max_new_tokens = 0;
    /// What it wrote, cleaned, and with how many tokens. Known once the phase has run.
    std::string prompt;
    int64_t tokens = 0;
  };
  std::optional<Enhancement> enhancement;
  /// What the caller ought to know about the choices made.
  std::vector<std::string> warnings;
  NoiseGenerator noise_generator = NoiseGenerator::kTorchCpu;
  DType noise_dtype = DType::kF32;
  /// Launch shape of the torch_cuda generator: large draws depend on it.
  int64_t noise_multiprocessors = 0, noise_threads_per_multiprocessor = 0;
  DType compute_dtype = DType::kF32;
  struct Stage {
    int64_t height = 0, width = 0;
    /// E.g. "euler", "euler_ancestral eta=1 s_noise=1".
    std::string sampler;
    std::vector<float> sigmas;
    /// Weight of the noise in the stage's starting point.
    float noise_scale = 1.0f;
    /// 0 for an absent modality.
    int64_t video_tokens = 0, audio_tokens = 0;
    /// Strength of the distilled LoRA in the transformer; 0: without.
    double distilled_lora_strength = 0.0;
    /// Its file name; empty: without.
    std::string distilled_lora;
    /// The transformer with it in was there from an earlier stage or job. Known once it is fetched.
    bool lora_kept = false;
  };
  /// Device memory of the second transformer that stages with the LoRA run with, while they do,
  /// beside what it shares with the clean one; 0 without such a stage.
  int64_t fused_transformer_bytes = 0;
  std::vector<Stage> stages;
  /// Tokens of the prompt that were read, and tokens at its end that did not fit and had no effect.
  /// Known once the text phase has run.
  int64_t prompt_tokens = 0, dropped_prompt_tokens = 0;
  /// How the video latent is decoded: "untiled", with a remark where the reference would tile.
  std::string video_decode_layout;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_EFFECTIVE_PARAMETERS_H_
