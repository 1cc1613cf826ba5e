#ifndef LTX_SERVER_GENERATION_TASK_H_
#define LTX_SERVER_GENERATION_TASK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/media/mp4_writer.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "kernels/memory_ledger.h"
#include "server/jobs/generation_sink.h"
#include "server/metrics/server_metrics.h"
#include "server/preview.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// One GenerateVideo request as work for the scheduler: the engine's units, then verification and
/// encoding in pieces of a few frames.
class GenerationTask final : public Task {
 public:
  /// `model` and `metrics` must outlive the task. `previews` may be null. `output_path`: resolved
  /// path for the clip, or empty: it is delivered to the sink.
  GenerationTask(std::string id, const pipeline::Model* model, pipeline::GenerationRequest request,
                 std::string output_path, std::shared_ptr<GenerationSink> sink,
                 ServerMetrics* metrics, std::unique_ptr<PreviewMaker> previews = nullptr);
  ~GenerationTask() override;

  absl::Status Start(int device) override;
  absl::StatusOr<UnitOutcome> AdvanceUnit() override;
  void OnSuspend() override;
  void OnResume() override;

 private:
  struct Clip;

  absl::Status AdvanceEngine();
  /// Takes the clip off the device and judges it, so that a broken one never gets a file.
  absl::Status TakeClip();
  absl::Status Verify();
  /// Encodes the next frames; the last unit finishes the file and delivers it.
  absl::StatusOr<bool> AdvanceMux();
  absl::Status MuxFrames();
  absl::Status MuxEnd();

  int mux_units() const;
  std::string ClipPath() const;
  void Report(v1::Phase phase, int unit, int units);
  void SendAdmitted();
  void SendPreview(const pipeline::UnitReport& unit);
  void FillReport();
  double RunSeconds() const;

  const std::string id_;
  const pipeline::Model* const model_;
  const pipeline::GenerationRequest request_;
  const std::string output_path_;
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
  int units_done_ = 0;
  int units_total_ = 0;
  std::unique_ptr<pipeline::GenerationJob> job_;
  std::unique_ptr<Clip> clip_;
  std::unique_ptr<media::Mp4Writer> writer_;
  int mux_done_ = 0;
  absl::Duration mux_time_;
  v1::GenerationReport report_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_TASK_H_
