#ifndef LTX_SERVER_MODEL_BACKEND_H_
#define LTX_SERVER_MODEL_BACKEND_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/model.h"
#include "server/generation_backend.h"
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
  };
  /// `model` and `metrics` must outlive the backend and its tasks.
  ModelBackend(const pipeline::Model* model, Options options, ServerMetrics* metrics)
      : model_(model), options_(std::move(options)), metrics_(metrics) {}

  absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) override;
  void Describe(v1::HealthResponse* response) const override;
  /// What there is to tell but for the queue.
  ServerMetrics::Reading ReadMetrics() const;

 private:
  const pipeline::Model* const model_;
  const Options options_;
  ServerMetrics* const metrics_;
  /// Shared with the tasks.
  const std::shared_ptr<PreviewProjection> projection_ = std::make_shared<PreviewProjection>();
};

}  // namespace ltx::server

#endif  // LTX_SERVER_MODEL_BACKEND_H_
