#ifndef LTX_SERVER_METRICS_METRICS_ENDPOINT_H_
#define LTX_SERVER_METRICS_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ltx::server {

/// A small HTTP port for scrapers and probes, apart from the gRPC port:
///   GET /metrics  Prometheus' text format
///   GET /healthz  200 while the process answers at all
///   GET /readyz   200 while new jobs are accepted, else 503 with the reason
/// Unauthenticated by design: bind it to loopback or a network that only scrapers reach.
class MetricsEndpoint {
 public:
  struct Handlers {
    /// The body of /metrics.
    std::function<std::string()> metrics;
    /// OK if new jobs are accepted; else its message is the body of the 503.
    std::function<absl::Status()> ready;
  };

  /// Serves on `listen`, HOST:PORT (port 0: any free one), on threads of its own until destroyed.
  /// INVALID_ARGUMENT for what is not HOST:PORT, FAILED_PRECONDITION if the port cannot be had.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& listen,
                                                                Handlers handlers);
  /// Waits for answers under way; no handler is called afterwards.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  int port() const { return port_; }

 private:
  struct Http;
  MetricsEndpoint();

  const std::unique_ptr<Http> http_;
  int port_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_METRICS_METRICS_ENDPOINT_H_
