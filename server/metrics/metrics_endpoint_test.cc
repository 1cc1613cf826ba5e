#include "server/metrics/metrics_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<MetricsEndpoint> Serve(std::atomic<bool>* draining) {
  MetricsEndpoint::Handlers handlers;
  handlers.metrics = [] { return std::string("some_total 1\n"); };
  handlers.ready = [draining] {
    return draining->load() ? absl::UnavailableError("draining") : absl::OkStatus();
  };
  auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", handlers);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

TEST(MetricsEndpointTest, AnswersScrapersAndProbes) {
  std::atomic<bool> draining{false};
  const auto endpoint = Serve(&draining);
  httplib::Client client("127.0.0.1", endpoint->port());
  auto metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(metrics->body, "some_total 1\n");
  EXPECT_THAT(metrics->get_header_value("Content-Type"), HasSubstr("version=0.0.4"));
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_EQ(client.Get("/other")->status, 404);
  draining = true;
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  EXPECT_EQ(client.Get("/readyz")->body, "draining\n");
  EXPECT_EQ(client.Get("/healthz")->status, 200);
}

TEST(MetricsEndpointTest, RefusesBodies) {
  std::atomic<bool> draining{false};
  const auto endpoint = Serve(&draining);
  httplib::Client client("127.0.0.1", endpoint->port());
  const auto answer = client.Post("/metrics", std::string(1 << 20, 'x'), "text/plain");
  EXPECT_TRUE(!answer || answer->status >= 400);
  EXPECT_EQ(httplib::Client("127.0.0.1", endpoint->port()).Get("/healthz")->status, 200);
}

TEST(MetricsEndpointTest, SaysWhichAddressIsAtFault) {
  const auto status = [](const std::string& listen) {
    return MetricsEndpoint::Start(listen, {}).status();
  };
  EXPECT_EQ(status("here").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status("127.0.0.1:70000").message()), HasSubstr("127.0.0.1:70000"));
  std::atomic<bool> draining{false};
  const auto first = Serve(&draining);
  const absl::Status taken = status(absl::StrCat("127.0.0.1:", first->port()));
  EXPECT_EQ(taken.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.message()), HasSubstr("taken"));
}

TEST(MetricsEndpointTest, StopsAtOnce) {
  std::atomic<bool> draining{false};
  for (int i = 0; i < 3; ++i) Serve(&draining);
}

}  // namespace
}  // namespace ltx::server
