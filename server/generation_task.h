#ifndef LTX_SERVER_GENERATION_TASK_H_
#define LTX_SERVER_GENERATION_TASK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "kernels/memory_ledger.h"
#include "server/clip_encoder.h"
#include "server/governor/governor.h"
#include "server/governor/lease_monitor.h"
#include "server/jobs/generation_sink.h"
#include "server/media_kind.h"
#include "server/metrics/server_metrics.h"
#include "server/preview.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// One GenerateVideo request as work for the scheduler: the engine's units, then verification and
/// encoding in pieces of a few frames. Frames are encoded from the moment when they are decoded, on
/// a thread beside the units that are left.
class GenerationTask final : public Task {
 public:
  struct Order {
    pipeline::GenerationRequest request;
    /// What was projected when the request was admitted; its time lease is watched.
    std::shared_ptr<const GovernorPlan> plan;
    /// Resolved path for the clip, or empty: it is delivered to the sink.
    std::string output_path;
    /// Whether what there is is kept if the lease stops the job.
    bool keep_partial_results = false;
    /// A preview after every so many denoising steps; 0: none.
    int preview_every_steps = 0;
    /// Needed for previews; shared by all tasks of the model.
    std::shared_ptr<PreviewProjection> projection;
  };
  /// `model`, `governor` and `metrics` must outlive the task. The governor is told what units took.
  GenerationTask(std::string id, const pipeline::Model* model, Governor* governor, Order order,
                 std::shared_ptr<GenerationSink> sink, ServerMetrics* metrics);
  ~GenerationTask() override;

  absl::Status Start(int device) override;
  absl::StatusOr<UnitOutcome> AdvanceUnit() override;
  void OnSuspend() override;
  void OnResume() override;

 private:
  struct Clip;

  absl::Status AdvanceEngine();
  /// Tells the governor of a unit, and asks it whether the job may go on. `observe`: the unit was
  /// what the plan says.
  absl::Status Account(size_t index, const pipeline::UnitReport& unit, bool observe);
  /// Whether the unit encodes a prompt that the model has written: another one than was planned.
  bool WasWritten(const pipeline::WorkUnit& unit) const;
  /// Makes room for the next unit: transformers with an adapter that nobody uses go, if there would
  /// be too little left beside them.
  void MakeRoom(pipeline::Phase phase);
  void KeepFused(int64_t bytes);
  /// Hands out what there is of the clip, as a file.
  absl::Status KeepPartial();
  /// Compares the projection with what the job took.
  void CompareMemory(int64_t measured_bytes);
  /// Takes finished frames off the device and gives them to the encoder.
  absl::Status TakeFrames();
  absl::Status StartEncoder();
  /// Takes the sound off the device and judges the clip, so that a broken one never gets a file.
  absl::Status TakeClip();
  absl::Status Verify();
  /// Encodes the next frames; the last unit finishes the file and delivers it.
  absl::StatusOr<bool> AdvanceMux();
  absl::Status MuxEnd();

  /// Settles mux_units_ for a clip of so many frames.
  void CountMuxUnits(int64_t num_frames);
  std::string ClipPath() const;
  /// With the counts of the whole job filled in.
  void Report(v1::Progress of_phase);
  void SendAdmitted();
  void SendPreview(const pipeline::UnitReport& unit);
  void FillReport();
  double RunSeconds() const;

  const std::string id_;
  const pipeline::Model* const model_;
  Governor* const governor_;
  const pipeline::GenerationRequest request_;
  const MediaKind kind_;
  const std::shared_ptr<const GovernorPlan> plan_;
  const std::string output_path_;
  const bool keep_partial_results_;
  const std::shared_ptr<GenerationSink> sink_;
  ServerMetrics* const metrics_;
  /// Null if none are wanted, or could not be made.
  std::unique_ptr<PreviewMaker> previews_;
  const absl::Time created_;

  absl::Time started_;
  absl::Time suspended_since_;
  absl::Duration suspended_;
  /// Peaks of the device's memory before the last pause.
  MemoryLedger::Snapshot earlier_peaks_;
  /// What suspended jobs held when this one started.
  int64_t held_by_others_ = 0;
  /// Peak of the ledger by the plan, with the transformers that happened to be kept.
  int64_t expected_bytes_ = 0;
  LeaseMonitor monitor_;
  int units_done_ = 0;
  int units_total_ = 0;
  /// Units of the governor's plan that never ran, before the one that is next.
  int units_left_out_ = 0;
  std::unique_ptr<pipeline::GenerationJob> job_;
  std::unique_ptr<Clip> clip_;
  /// Of a clip, from its first frames on.
  std::unique_ptr<ClipEncoder> encoder_;
  int mux_units_ = 0;
  int mux_done_ = 0;
  absl::Duration mux_time_;
  v1::GenerationReport report_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_TASK_H_
