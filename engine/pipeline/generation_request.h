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
#include "engine/pipeline/recipe.h"
#include "engine/sampling/latent_state.h"
#include "kernels/dtype.h"

namespace ltx::pipeline {

/// Whose normal deviates a seed stands for: those of a PyTorch run on a CPU or on a CUDA device.
enum class NoiseGenerator : uint8_t { kTorchCpu, kTorchCuda };
/// "torch_cpu" or "torch_cuda".
absl::string_view NoiseGeneratorName(NoiseGenerator generator);
/// INVALID_ARGUMENT listing the known names.
absl::StatusOr<NoiseGenerator> ParseNoiseGenerator(absl::string_view name);

/// Whether the passes of a guided evaluation go through the model as rows of one batch or one after
/// the other. The results agree within rounding; a batch takes more memory.
enum class GuidanceBatching : uint8_t { kAuto, kBatched, kSequential };
/// "auto", "batched" or "sequential".
absl::string_view GuidanceBatchingName(GuidanceBatching batching);

/// Guidance of one modality, in the reference's terms; unset: the recipe's default.
struct GuidanceFields {
  std::optional<double> cfg_scale;
  std::optional<double> stg_scale;
  std::optional<double> rescale_scale;
  /// The reference's a2v scale for video, v2a scale for audio.
  std::optional<double> modality_scale;
  std::optional<std::vector<int64_t>> stg_blocks;
  std::optional<int64_t> skip_step;
};

/// Let the duration head choose the length; the range in which it may.
struct AutoDuration {
  /// The reference's default range.
  static constexpr double kMinSeconds = 1.0;
  static constexpr double kMaxSeconds = 20.0;
  double min_seconds = kMinSeconds;
  /// Unset: kMaxSeconds, or what the model takes if that is less.
  std::optional<double> max_seconds;
};

/// What to generate, in the words of the reference's command line. Sizes are pixels of the
/// finished clip.
struct GenerationRequest {
  std::string prompt;
  /// Both 0 in a recipe without picture.
  int64_t height = 0;
  int64_t width = 0;
  /// Also the length of a sound, as num_frames / frame_rate. With auto_duration: the upper bound.
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
  /// Leave out the sound: the audio stream is absent from every stage.
  bool video_only = false;
  std::optional<AutoDuration> auto_duration;
  /// Let the text model write a fuller prompt out of this one, with the request's seed.
  bool enhance_prompt = false;

  // What follows is honoured by some recipes only; the others refuse it by name.
  std::optional<std::string> negative_prompt;
  std::optional<int64_t> num_inference_steps;
  sampling::PerModality<GuidanceFields> guidance;
  GuidanceBatching guidance_batching = GuidanceBatching::kAuto;
  std::optional<double> distilled_lora_strength_stage_1;
  std::optional<double> distilled_lora_strength_stage_2;
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

/// The legal frame counts (8k + 1, within the limits) next to `num_frames`, below and above; a side
/// without one is empty.
struct FrameNeighbours {
  std::optional<int64_t> below;
  std::optional<int64_t> above;
};
FrameNeighbours NearestFrameCounts(int64_t num_frames, const RequestLimits& limits);

/// OK, or INVALID_ARGUMENT with an ErrorDetail naming field, value and what would be legal. Checks,
/// in this order: fields the recipe cannot honour, prompts, length, sizes, sampling and guidance.
absl::Status ValidateRequest(const GenerationRequest& request, const RequestLimits& limits);

/// The frame counts between which a prediction is clamped: round(seconds * rate), half to even as
/// in the reference, an open maximum cut to the limits. INVALID_ARGUMENT naming the bound if the
/// range is empty, leaves the limits, or holds no 8k + 1.
struct FrameRange {
  int64_t min_frames = 0;
  int64_t max_frames = 0;
};
absl::StatusOr<FrameRange> AutoDurationRange(const AutoDuration& duration,
                                             const FrameRate& frame_rate,
                                             const RequestLimits& limits);
/// The frame count; of an automatic duration the largest that it may become. Errors are those of
/// AutoDurationRange.
absl::StatusOr<int64_t> LongestFrames(const GenerationRequest& request,
                                      const RequestLimits& limits);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GENERATION_REQUEST_H_
