#ifndef LTX_SERVER_MODEL_BACKEND_H_
#define LTX_SERVER_MODEL_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/model.h"
#include "server/generation_backend.h"
#include "server/governor/governor.h"
#include "server/metrics/server_metrics.h"
#include "server/preview.h"

namespace ltx::server {

/// Generation with a loaded model.
class ModelBackend final : public GenerationBackend {
 public:
  struct Options {
    /// Folders below which a request may have its file written.
    std::vector<std::string> output_roots;
    /// What Describe() cannot ask the model for.
    std::string model_path;
    /// Free memory of the machine or card before anything was loaded.
    int64_t baseline_available_bytes = 0;
  };
  /// `model`, `governor` and `metrics` must outlive the backend and its tasks.
  ModelBackend(const pipeline::Model* model, Governor* governor, Options options,
               ServerMetrics* metrics)
      : model_(model), governor_(governor), options_(std::move(options)), metrics_(metrics) {}

  /// Refuses what the governor refuses, but for deadlines: those depend on the queue, see
  /// ModelHooks().
  absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) override;
  absl::StatusOr<v1::PlanResponse> Plan(const v1::GenerateVideoRequest& request,
                                        absl::Time deadline, const QueueOutlook& outlook) override;
  absl::StatusOr<v1::ListRungsResponse> ListRungs(const v1::ListRungsRequest& request) override;
  void Describe(v1::HealthResponse* response) const override;
  /// What there is to tell but for the queue.
  ServerMetrics::Reading ReadMetrics() const;

 private:
  /// The wire's request as the engine's, checked.
  absl::StatusOr<pipeline::GenerationRequest> Map(const v1::GenerateVideoRequest& request) const;

  const pipeline::Model* const model_;
  Governor* const governor_;
  const Options options_;
  ServerMetrics* const metrics_;
  /// Shared with the tasks.
  const std::shared_ptr<PreviewProjection> projection_ = std::make_shared<PreviewProjection>();
};

/// DEADLINE_EXCEEDED (DEADLINE_CANNOT_BE_MET) for a job that cannot meet its deadline behind those
/// that wait.
absl::Status AdmitByDeadline(const JobSpec& job, const std::function<QueueOutlook()>& outlook);

/// What the governor decides for the scheduler: AdmitByDeadline(), and a job is suspended only if
/// what it holds and what the next one needs fit beside each other. Without a job it is made use
/// of by Model::Improve. Both must outlive the scheduler.
SchedulerHooks ModelHooks(const pipeline::Model* model, const Governor* governor);

}  // namespace ltx::server

#endif  // LTX_SERVER_MODEL_BACKEND_H_
