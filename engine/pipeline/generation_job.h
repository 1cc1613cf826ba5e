#ifndef LTX_ENGINE_PIPELINE_GENERATION_JOB_H_
#define LTX_ENGINE_PIPELINE_GENERATION_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/pipeline/effective_parameters.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/work_unit.h"
#include "kernels/preparation.h"
#include "kernels/tensor.h"

namespace ltx::pipeline {

/// What Advance() did.
struct UnitReport {
  WorkUnit unit;
  /// Wall-clock seconds, the device's work included.
  double seconds = 0;
  /// What the device and the transformer prepared during the unit, and will find later.
  Preparation preparation;
  /// Units finished and planned, over all phases.
  int completed = 0;
  int total = 0;
};

struct PhaseSeconds {
  Phase phase = Phase::kText;
  int units = 0;
  double seconds = 0;
};

/// Frames of the clip that are final, owner kMedia.
struct FinishedFrames {
  /// Position of the first of them.
  int64_t first_frame = 0;
  ByteFrames bytes;
};

struct GenerationResult {
  /// f32 [2, N], owner kMedia. Undefined without sound.
  Tensor waveform;
  int64_t sample_rate = 0;
  EffectiveParameters parameters;
  /// Phases in order of execution.
  std::vector<PhaseSeconds> phases;
};

/// What a job has made that does not go on to its end.
struct PartialResult {
  /// The last finished unit.
  WorkUnit unit;
  /// In a denoising stage: sampling steps that the latents have behind them.
  int step = 0;
  /// Noise level of the latents; 0 outside stages.
  double sigma = 0;
  /// What is there of "video_latent" [1, F, H, W, C], "audio_latent" [1, T, C] (both normalised, as
  /// the transformer sees them) and "waveform" (as in GenerationResult). Frames are handed out as
  /// they become final, see TakeFrames().
  std::vector<std::pair<std::string, Tensor>> tensors;
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

  /// All units in the order in which they run. Counts may change when they become known: those of
  /// the video decoder when it starts, and the sizes behind the units when a length is predicted.
  const std::vector<WorkUnit>& plan() const;
  /// Units finished so far; plan()[completed()] is next.
  int completed() const;
  bool done() const { return completed() == static_cast<int>(plan().size()); }
  const EffectiveParameters& parameters() const;

  /// Runs exactly one unit and waits for it. After an error the job cannot continue: destroy it.
  /// INTERNAL (NONFINITE_OUTPUT) naming phase and step where NaN or infinity appeared,
  /// RESOURCE_EXHAUSTED for lack of device memory, FAILED_PRECONDITION if done or failed before.
  absl::StatusOr<UnitReport> Advance();

  /// What there is between two units. FAILED_PRECONDITION if there is nothing yet, or after an
  /// error.
  absl::StatusOr<PartialResult> Partial() const;

  /// Frames that became final since the last call, in order, for whoever encodes them while the job
  /// goes on. Those that nobody takes stay with the job.
  std::vector<FinishedFrames> TakeFrames();

  /// The finished clip but for its frames, once. FAILED_PRECONDITION before done() or a second
  /// time.
  absl::StatusOr<GenerationResult> TakeResult();

 private:
  struct State;
  explicit GenerationJob(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GENERATION_JOB_H_
