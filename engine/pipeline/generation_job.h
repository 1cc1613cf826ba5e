#ifndef LTX_ENGINE_PIPELINE_GENERATION_JOB_H_
#define LTX_ENGINE_PIPELINE_GENERATION_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/model.h"
#include "kernels/tensor.h"

namespace ltx::pipeline {

/// What a work unit belongs to.
enum class Phase : uint8_t { kText, kStage1, kUpsample, kStage2, kVideoDecode, kAudioDecode };
inline constexpr int kPhaseCount = 6;
/// "text", "stage1", "upsample", "stage2", "vdecode", "adecode".
absl::string_view PhaseName(Phase phase);

/// One uninterruptible piece of a job: unit `index` (from 1) of `count` in its phase.
struct WorkUnit {
  Phase phase = Phase::kText;
  int index = 1;
  int count = 1;
};

/// What Advance() did.
struct UnitReport {
  WorkUnit unit;
  /// Wall-clock seconds, the device's work included.
  double seconds = 0;
  /// Units finished and planned, over all phases.
  int completed = 0;
  int total = 0;
};

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
  /// How the video latent is decoded: "untiled", with a remark where the reference would tile.
  std::string video_decode_layout;
};

struct PhaseSeconds {
  Phase phase = Phase::kText;
  int units = 0;
  double seconds = 0;
};

struct GenerationResult {
  /// f32 [F, H, W, 3] in [0, 1], owner kMedia.
  Tensor frames;
  /// f32 [2, N], owner kMedia.
  Tensor waveform;
  int64_t sample_rate = 0;
  EffectiveParameters parameters;
  /// Phases in order of execution.
  std::vector<PhaseSeconds> phases;
};

struct JobOptions;

/// One request being computed, unit by unit. Holds the intermediate tensors between units and frees
/// everything when destroyed, at whatever point. Not thread-safe; two jobs on one model may be
/// advanced in turns.
class GenerationJob {
 public:
  /// Validates the request against the model and draws up the plan; touches no device memory.
  /// `model` must outlive the job.
  static absl::StatusOr<std::unique_ptr<GenerationJob>> Create(const Model* model,
                                                               const GenerationRequest& request);
  /// The same with injected noise, contexts and observer; see job_options.h.
  static absl::StatusOr<std::unique_ptr<GenerationJob>> Create(const Model* model,
                                                               const GenerationRequest& request,
                                                               const JobOptions& options);
  ~GenerationJob();
  GenerationJob(const GenerationJob&) = delete;
  GenerationJob& operator=(const GenerationJob&) = delete;

  /// All units in the order in which they run.
  const std::vector<WorkUnit>& plan() const;
  /// Units finished so far; plan()[completed()] is next.
  int completed() const;
  bool done() const { return completed() == static_cast<int>(plan().size()); }
  const EffectiveParameters& parameters() const;

  /// Runs exactly one unit and waits for it. After an error the job cannot continue: destroy it.
  /// INTERNAL (NONFINITE_OUTPUT) naming phase and step where NaN or infinity appeared,
  /// RESOURCE_EXHAUSTED for lack of device memory, FAILED_PRECONDITION if done or failed before.
  absl::StatusOr<UnitReport> Advance();

  /// The finished clip, once. FAILED_PRECONDITION before done() or a second time.
  absl::StatusOr<GenerationResult> TakeResult();

 private:
  struct State;
  explicit GenerationJob(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GENERATION_JOB_H_
