#ifndef LTX_ENGINE_PIPELINE_JOB_OPTIONS_H_
#define LTX_ENGINE_PIPELINE_JOB_OPTIONS_H_

#include <memory>
#include <optional>
#include <vector>

#include "engine/pipeline/stage_spec.h"
#include "engine/sampling/noise_source.h"
#include "engine/sampling/torch_cuda_generator.h"
#include "engine/stage_observer.h"
#include "engine/text/prompt_encoder.h"

namespace ltx::pipeline {

/// Parts of a run given from outside: for checks against recorded runs. An empty struct is an
/// ordinary run.
struct JobOptions {
  /// Replaces the seeded generators.
  std::shared_ptr<sampling::NoiseSource> noise;
  /// Replace the text phase; the negative ones are needed where a guidance pass uses them.
  std::optional<text::PromptContexts> contexts;
  std::optional<text::PromptContexts> negative_contexts;
  /// Latent frames that are given, for each stage; fewer lists than stages leave the others free.
  std::vector<std::vector<ReplacedFrames>> replaced_frames;
  /// Stage-1 sampler: ancestral or plain Euler. Unset: by the model's version.
  std::optional<bool> ancestral;
  /// The GPU that torch_cuda noise stands for. Unset: the device itself, or on a CPU the default.
  std::optional<sampling::CudaLaunchShape> cuda_launch_shape;
  /// Told of intermediate values: "context.video", "context.audio" [1, S, D]; per stage k and
  /// modality m "s<k>.<m>.initial" and "s<k>.<m>.noised" [1, T, C], "s<k>.<m>.denoise_mask" [1, T],
  /// "s<k>.<m>.positions" [1, axes, T, 2], "s<k>.call<j>.<m>.in" and ".x0" [1, T, C], and
  /// "s<k>.<m>.final" [1, T, C]; "upscaled" [1, F, H, W, C]; "frames" [n, H, W, 3]
  /// f32 in [0, 1], each frame once and in order.
  StageObserver observer;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_JOB_OPTIONS_H_
