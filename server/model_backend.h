#ifndef LTX_SERVER_MODEL_BACKEND_H_
#define LTX_SERVER_MODEL_BACKEND_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/pipeline/model.h"
#include "server/generation_backend.h"
#include "server/metrics/server_metrics.h"

namespace ltx::server {

/// Generation with a loaded model.
class ModelBackend final : public GenerationBackend {
 public:
  struct Options {
    /// Folders below which a request may have its file written.
    std::vector<std::string> output_roots;
    // What Describe() cannot ask the model for.
    std::string model_path;
    int threads = 0;
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
};

}  // namespace ltx::server

#endif  // LTX_SERVER_MODEL_BACKEND_H_
