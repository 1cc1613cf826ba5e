#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>

#include <string>

#include "absl/strings/numbers.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kPortLine[] = "metrics and probes on port ";

/// The port that the log names.
int MetricsPort(ServerProcess* server) {
  const std::string log = server->process().Err();
  int port = 0;
  const size_t at = log.find(kPortLine);
  if (at == std::string::npos) return port;
  const std::string rest = log.substr(at + sizeof(kPortLine) - 1);
  EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find('\n')), &port)) << log;
  return port;
}

TEST(MetricsTest, FiguresOfARunAndARefusal) {
  const auto server = ServerProcess::Start({"--metrics-listen", "127.0.0.1:0"});
  ASSERT_TRUE(server.ok()) << server.status();
  httplib::Client http("127.0.0.1", MetricsPort(server->get()));
  ASSERT_TRUE(http.Get("/readyz"));
  EXPECT_EQ(http.Get("/readyz")->status, 200);

  v1::GenerateVideoRequest request = SmallRequest(1);
  EXPECT_EQ(CallGenerate((*server)->address(), request).error.code, absl::StatusCode::kOk);
  request.set_num_frames(20);
  EXPECT_EQ(CallGenerate((*server)->address(), request).error.reason, "FRAME_GRID");

  const auto answer = http.Get("/metrics");
  ASSERT_TRUE(answer);
  const std::string& text = answer->body;
  EXPECT_THAT(
      text, ContainsRegex(R"(ltx_requests_total\{code="OK",mode="distilled",rung="[0-9x]+"\} 1)"));
  EXPECT_THAT(
      text, HasSubstr(R"(ltx_requests_total{code="INVALID_ARGUMENT",mode="none",rung="none"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_refusals_total{reason="FRAME_GRID"} 1)"));
  EXPECT_THAT(text, HasSubstr("ltx_queue_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("ltx_queue_depth 0"));
  // Eight steps at half size and three at full size.
  EXPECT_THAT(text, ContainsRegex(R"(ltx_step_seconds_count\{precision="f32",[^}]*\} 11)"));
  for (const char* phase : {"text", "stage1", "upsample", "stage2", "vdecode", "adecode", "mux"}) {
    EXPECT_THAT(text,
                HasSubstr(std::string(R"(ltx_phase_seconds_count{phase=")") + phase + R"("} 1)"));
  }
  EXPECT_THAT(text, ContainsRegex(R"(ltx_device_bytes\{kind="weights"\} [1-9])"));
  EXPECT_THAT(text, ContainsRegex(R"(ltx_device_bytes\{kind="free"\} [1-9])"));
}

TEST(MetricsTest, NotReadyWhileDraining) {
  const auto server = ServerProcess::StartModel(LargeModel(), {"--metrics-listen", "127.0.0.1:0"});
  ASSERT_TRUE(server.ok()) << server.status();
  httplib::Client http("127.0.0.1", MetricsPort(server->get()));
  BackgroundJob job((*server)->address(), EndlessRequest(1), MakeFolder() + "/clip.mp4");
  ASSERT_TRUE(job.WaitForAdmission());
  (*server)->process().Signal(SIGTERM);
  ASSERT_TRUE((*server)->process().WaitForErr("no new jobs", kLimit).ok());
  // The log line comes first; the executor hears of it a moment later.
  int status = 200;
  for (int i = 0; i < 500 && status == 200; ++i) {
    const auto answer = http.Get("/readyz");
    if (!answer) break;
    status = answer->status;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(status, 503);
  EXPECT_EQ(http.Get("/healthz")->status, 200);
}

TEST(MetricsTest, OffByDefault) {
  const auto server = ServerProcess::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(MetricsPort(server->get()), 0);
}

}  // namespace
}  // namespace ltx::testing
