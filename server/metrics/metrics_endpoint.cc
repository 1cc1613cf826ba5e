#include "server/metrics/metrics_endpoint.h"

#include <httplib.h>

#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

/// A scraper, a probe, and room for one that hangs.
constexpr size_t kThreads = 3;
/// A client that sends its request slower than this holds a thread for nothing.
constexpr time_t kTimeoutSeconds = 5;

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

struct MetricsEndpoint::Http {
  httplib::Server server;
  std::thread thread;
};

MetricsEndpoint::MetricsEndpoint() : http_(std::make_unique<Http>()) {}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(const std::string& listen,
                                                                        Handlers handlers) {
  const size_t colon = listen.rfind(':');
  int port = -1;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics_listen \"", listen, "\" is not HOST:PORT with a port in 0..65535"));
  }
  std::string host = listen.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }

  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint());
  httplib::Server& server = endpoint->http_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  server.set_keep_alive_timeout(kTimeoutSeconds);
  server.set_payload_max_length(0);
  // The library's default shares the port with other processes, which would take half the scrapes.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.Get("/metrics", [metrics = std::move(handlers.metrics)](const httplib::Request&,
                                                                 httplib::Response& response) {
    response.set_content(metrics(), kPrometheusText);
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", kPlain);
  });
  server.Get("/readyz", [ready = std::move(handlers.ready)](const httplib::Request&,
                                                            httplib::Response& response) {
    const absl::Status status = ready();
    response.status = status.ok() ? 200 : 503;
    response.set_content(status.ok() ? "ready\n" : absl::StrCat(status.message(), "\n"), kPlain);
  });

  if (port == 0) {
    endpoint->port_ = server.bind_to_any_port(host);
  } else if (server.bind_to_port(host, port)) {
    endpoint->port_ = port;
  }
  if (endpoint->port_ <= 0) {
    return absl::FailedPreconditionError(absl::StrCat("metrics_listen: cannot listen on ", listen,
                                                      ": is it taken, or not an address here?"));
  }
  endpoint->http_->thread = std::thread([&server] { server.listen_after_bind(); });
  // Stopping a server that does not run yet would be forgotten.
  while (!server.is_running()) std::this_thread::yield();
  return endpoint;
}

MetricsEndpoint::~MetricsEndpoint() {
  if (!http_->thread.joinable()) return;
  http_->server.stop();
  http_->thread.join();
}

}  // namespace ltx::server
