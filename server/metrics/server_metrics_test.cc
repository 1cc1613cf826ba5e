#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace ltx::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ServerMetricsTest, CountsRequestsByModeRungAndCode) {
  ServerMetrics metrics;
  metrics.CountRequest("distilled", "256x192x25", absl::StatusCode::kOk);
  metrics.CountRequest("distilled", "256x192x25", absl::StatusCode::kOk);
  metrics.CountRequest("", "", absl::StatusCode::kInvalidArgument);
  metrics.CountRefusal("FRAME_GRID");
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE ltx_requests_total counter"));
  EXPECT_THAT(text,
              HasSubstr(R"(ltx_requests_total{code="OK",mode="distilled",rung="256x192x25"} 2)"));
  EXPECT_THAT(
      text, HasSubstr(R"(ltx_requests_total{code="INVALID_ARGUMENT",mode="none",rung="none"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_refusals_total{reason="FRAME_GRID"} 1)"));
}

TEST(ServerMetricsTest, TimesFallIntoExponentialBuckets) {
  ServerMetrics metrics;
  metrics.ObserveQueueSeconds(0.5);
  metrics.ObservePhaseSeconds("text", 0.0005);
  metrics.ObservePhaseSeconds("text", 100);
  metrics.ObserveStepSeconds("r", "bf16", 2);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("ltx_queue_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("ltx_queue_seconds_sum 0.5"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_phase_seconds_bucket{phase="text",le="0.001"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_phase_seconds_bucket{phase="text",le="0.0018"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_phase_seconds_count{phase="text"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_step_seconds_sum{precision="bf16",rung="r"} 2)"));
}

TEST(ServerMetricsTest, ProjectionsAreRatios) {
  ServerMetrics metrics;
  metrics.ObserveProjection(ProjectionKind::kMemory, 110, 100);
  metrics.ObserveProjection(ProjectionKind::kTime, 1, 0);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr(R"(ltx_projection_error_ratio_sum{kind="memory"} 1.1)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(kind="time")")));
}

TEST(ServerMetricsTest, CachesAreThereBeforeTheirFirstEvent) {
  ServerMetrics metrics;
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(ltx_cache_hits_total{cache="prompt"} 0)"));
  metrics.CountCacheHit(kConditionCache);
  metrics.CountCacheMiss(kConditionCache);
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(ltx_cache_hits_total{cache="condition"} 1)"));
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(ltx_cache_misses_total{cache="condition"} 1)"));
}

TEST(ServerMetricsTest, AmountsAreReadAtEachLook) {
  ServerMetrics metrics;
  EXPECT_THAT(metrics.Text(), Not(HasSubstr(R"(ltx_device_bytes{)")));
  MemoryLedger ledger;
  metrics.SetSource([&ledger] { return ServerMetrics::Reading{ledger.Read(), 77, 3, 8, 9}; });
  ledger.Add(MemoryOwner::kWeightsDit, 10);
  ledger.Add(MemoryOwner::kWeightsText, 5);
  ledger.Add(MemoryOwner::kActivations, 3);
  ledger.Add(MemoryOwner::kMedia, 4);
  ledger.Add(MemoryOwner::kCache, 2);
  std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr(R"(ltx_device_bytes{kind="weights"} 15)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_device_bytes{kind="workspace"} 7)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_device_bytes{kind="cache"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_device_bytes{kind="free"} 77)"));
  EXPECT_THAT(text, HasSubstr("ltx_queue_depth 3"));
  EXPECT_THAT(text, HasSubstr(R"(ltx_cache_hits_total{cache="prompt"} 8)"));
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(ltx_cache_misses_total{cache="prompt"} 9)"));
  ledger.Remove(MemoryOwner::kCache, 2);
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(ltx_device_bytes{kind="cache"} 0)"));
  metrics.SetSource(nullptr);
}

TEST(ServerMetricsTest, ManyThreadsLoseNothing) {
  ServerMetrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&metrics] {
      for (int n = 0; n < 500; ++n) metrics.CountRefusal("QUEUE_FULL");
      EXPECT_FALSE(metrics.Text().empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(ltx_refusals_total{reason="QUEUE_FULL"} 2000)"));
}

}  // namespace
}  // namespace ltx::server
