#ifndef LTX_ENGINE_PIPELINE_GENERATION_REQUEST_H_
#define LTX_ENGINE_PIPELINE_GENERATION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/pipeline/frame_rate.h"
#include "kernels/dtype.h"

namespace ltx::pipeline {

/// How a prompt becomes a clip. The names are part of the public interface.
enum class Recipe : uint8_t {
  /// "distilled": eight steps at half the width and height, the x2 latent upsampler, three steps at
  /// full size; unguided. As the reference's distilled pipeline.
  kDistilled,
  /// "distilled_one_stage": the eight steps at full size, decoded at once; needs no upsampler.
  kDistilledOneStage,
};
absl::string_view RecipeName(Recipe recipe);
/// INVALID_ARGUMENT listing the known names.
absl::StatusOr<Recipe> ParseRecipe(absl::string_view name);

/// Whose normal deviates a seed stands for: those of a PyTorch run on a CPU or on a CUDA device.
enum class NoiseGenerator : uint8_t { kTorchCpu, kTorchCuda };
/// "torch_cpu" or "torch_cuda".
absl::string_view NoiseGeneratorName(NoiseGenerator generator);
/// INVALID_ARGUMENT listing the known names.
absl::StatusOr<NoiseGenerator> ParseNoiseGenerator(absl::string_view name);

/// What to generate, in the words of the reference's command line. Sizes are pixels of the
/// finished clip.
struct GenerationRequest {
  std::string prompt;
  int64_t height = 0;
  int64_t width = 0;
  int64_t num_frames = 0;
  FrameRate frame_rate;
  /// A negative seed is the same as its value modulo 2^64.
  uint64_t seed = 0;
  Recipe recipe = Recipe::kDistilled;
  /// Unset: the generator of the device the model is on.
  std::optional<NoiseGenerator> noise_generator;
  /// kF32 or kBF16: the dtype in which noise is drawn (it changes the values on torch_cpu). Unset:
  /// the dtype of the run's latents.
  std::optional<DType> noise_dtype;

  // Known to the reference, but not to the distilled recipes: set means refused by name.
  std::optional<std::string> negative_prompt;
  std::optional<int64_t> num_inference_steps;
  std::optional<double> video_cfg_guidance_scale;
  std::optional<double> video_stg_guidance_scale;
  std::optional<double> video_rescale_scale;
  std::optional<std::vector<int64_t>> video_stg_blocks;
  std::optional<int64_t> video_skip_step;
  std::optional<double> a2v_guidance_scale;
  std::optional<double> audio_cfg_guidance_scale;
  std::optional<double> audio_stg_guidance_scale;
  std::optional<double> audio_rescale_scale;
  std::optional<std::vector<int64_t>> audio_stg_blocks;
  std::optional<int64_t> audio_skip_step;
  std::optional<double> v2a_guidance_scale;
  std::optional<int64_t> num_generated_keyframes;
};

/// What a model accepts.
struct RequestLimits {
  int64_t min_frames = 1;
  /// 20 seconds at 50 frames per second, the length of the position table the models train with.
  int64_t max_frames = 1001;
  int64_t min_size = 32;
  /// The models' spatial position table spans 2048 pixels.
  int64_t max_size = 2048;
  /// Far above the 1024 tokens a context holds; bounds the tokenizer's work.
  int64_t max_prompt_bytes = 16384;
};

/// Divisor of width and height: 64 for a recipe that starts at half size, else 32.
int64_t SizeMultiple(Recipe recipe);

/// The legal frame counts (8k + 1, within the limits) next to `num_frames`, below and above; a side
/// without one is empty.
struct FrameNeighbours {
  std::optional<int64_t> below;
  std::optional<int64_t> above;
};
FrameNeighbours NearestFrameCounts(int64_t num_frames, const RequestLimits& limits);

/// OK, or INVALID_ARGUMENT with an ErrorDetail naming field, value and what would be legal. Checks,
/// in this order: fields the recipe cannot honour, prompt, frame count, sizes, noise dtype.
absl::Status ValidateRequest(const GenerationRequest& request, const RequestLimits& limits);

/// The error for a field that `recipe` cannot honour; for callers that know further fields.
absl::Status UnsupportedFieldError(absl::string_view field, absl::string_view value, Recipe recipe);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GENERATION_REQUEST_H_
