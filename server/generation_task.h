#ifndef LTX_SERVER_GENERATION_TASK_H_
#define LTX_SERVER_GENERATION_TASK_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "server/executor.h"
#include "server/generation_sink.h"
#include "server/metrics/server_metrics.h"

namespace ltx::server {

/// Where a finished clip goes.
struct OutputTarget {
  /// Resolved path, or empty: the clip is streamed.
  std::string path;
  /// Folder for the file on its way to a client.
  std::string work_dir;
};

/// One GenerateVideo request as a job of the executor: the engine's units, then encoding and
/// verification, each a unit at which cancellation and deadline are looked at.
class GenerationTask final : public Job {
 public:
  /// `model` and `metrics` must outlive the task; `running_phase` is told which phase runs, for
  /// Health.
  GenerationTask(std::string id, absl::Time deadline, const pipeline::Model* model,
                 pipeline::GenerationRequest request, OutputTarget target,
                 std::shared_ptr<GenerationSink> sink, std::atomic<int>* running_phase,
                 ServerMetrics* metrics);

  void OnQueued(int ahead) override;
  absl::Status Run() override;
  void OnEnd(const absl::Status& status) override;

 private:
  struct Clip;

  absl::Status Generate(pipeline::GenerationJob* job);
  absl::Status Encode(Clip* clip);
  absl::Status EncodeMp4(Clip* clip, const std::string& path);
  absl::Status Verify(const Clip& clip);
  void Report(v1::Phase phase, int unit, int units);
  void SendAdmitted(const pipeline::GenerationJob& job, int mux_units);
  void FillReport(const pipeline::GenerationJob& job);

  const pipeline::Model* const model_;
  const pipeline::GenerationRequest request_;
  const OutputTarget target_;
  const std::shared_ptr<GenerationSink> sink_;
  std::atomic<int>* const running_phase_;
  ServerMetrics* const metrics_;
  const absl::Time created_;

  absl::Time started_;
  int units_done_ = 0;
  int units_total_ = 0;
  v1::GenerationReport report_;
  std::unique_ptr<MediaFile> media_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_TASK_H_
