#include "server/metrics/server_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"

namespace ltx::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

/// `count` bounds, each `factor` times the one before it.
Buckets Exponential(double first, double factor, int count) {
  Buckets bounds;
  for (double bound = first; count > 0; --count, bound *= factor) bounds.push_back(bound);
  return bounds;
}

/// A phase takes a millisecond on the smallest model and most of an hour on a large one on a CPU:
/// 1 ms to 71 min in steps of 1.8, at most 34 % off in the middle of a bucket.
Buckets Durations() { return Exponential(1e-3, 1.8, 27); }

/// projected / measured. Fine around 1, where a projection should lie, coarse far away.
Buckets Ratios() { return {0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0}; }

std::string Label(absl::string_view value) { return value.empty() ? "none" : std::string(value); }

/// Brings a counter to what its owner has counted.
void CountUpTo(uint64_t total, Counter* counter) {
  counter->Increment(static_cast<double>(total) - counter->Value());
}

}  // namespace

struct ServerMetrics::Families {
  prometheus::Registry registry;

  Family<Counter>& requests = BuildCounter()
                                  .Name("ltx_requests_total")
                                  .Help("Requests that ended, by recipe, rung and status code")
                                  .Register(registry);
  Family<Counter>& refusals = BuildCounter()
                                  .Name("ltx_refusals_total")
                                  .Help("Requests refused before they ran, by reason")
                                  .Register(registry);
  Gauge& queue_depth =
      BuildGauge().Name("ltx_queue_depth").Help("Jobs that wait").Register(registry).Add({});
  Histogram& queue_seconds = BuildHistogram()
                                 .Name("ltx_queue_seconds")
                                 .Help("Seconds from arrival to admission")
                                 .Register(registry)
                                 .Add({}, Durations());
  Family<Histogram>& phase_seconds = BuildHistogram()
                                         .Name("ltx_phase_seconds")
                                         .Help("Seconds a job spent in a phase")
                                         .Register(registry);
  Family<Histogram>& step_seconds = BuildHistogram()
                                        .Name("ltx_step_seconds")
                                        .Help("Seconds of one denoising step")
                                        .Register(registry);
  Family<Gauge>& device_bytes =
      BuildGauge()
          .Name("ltx_device_bytes")
          .Help(
              "Device memory: weights, workspace (with activations and media) and cache of this "
              "process; free is what the system has left for anybody")
          .Register(registry);
  Family<Histogram>& projection_error =
      BuildHistogram()
          .Name("ltx_projection_error_ratio")
          .Help("Projected over measured, of finished jobs; 1 is exact")
          .Register(registry);
  Family<Counter>& cache_hits =
      BuildCounter().Name("ltx_cache_hits_total").Help("Cache hits").Register(registry);
  Family<Counter>& cache_misses =
      BuildCounter().Name("ltx_cache_misses_total").Help("Cache misses").Register(registry);

  absl::Mutex mutex;
  std::function<Reading()> source ABSL_GUARDED_BY(mutex);
};

ServerMetrics::ServerMetrics() : families_(std::make_unique<Families>()) {
  // Present from the start: a rate over a series that appears with its first event misses it.
  for (const absl::string_view cache : {kPromptCache, kConditionCache}) {
    families_->cache_hits.Add({{"cache", Label(cache)}});
    families_->cache_misses.Add({{"cache", Label(cache)}});
  }
}

ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::CountRequest(absl::string_view mode, absl::string_view rung,
                                 absl::StatusCode code) {
  families_->requests
      .Add({{"mode", Label(mode)}, {"rung", Label(rung)}, {"code", absl::StatusCodeToString(code)}})
      .Increment();
}

void ServerMetrics::CountRefusal(absl::string_view reason) {
  families_->refusals.Add({{"reason", Label(reason)}}).Increment();
}

void ServerMetrics::ObserveQueueSeconds(double seconds) {
  families_->queue_seconds.Observe(seconds);
}

void ServerMetrics::ObservePhaseSeconds(absl::string_view phase, double seconds) {
  families_->phase_seconds.Add({{"phase", Label(phase)}}, Durations()).Observe(seconds);
}

void ServerMetrics::ObserveStepSeconds(absl::string_view rung, absl::string_view precision,
                                       double seconds) {
  families_->step_seconds.Add({{"rung", Label(rung)}, {"precision", Label(precision)}}, Durations())
      .Observe(seconds);
}

void ServerMetrics::ObserveProjection(ProjectionKind kind, double projected, double measured) {
  if (!(measured > 0)) return;
  const char* const name = kind == ProjectionKind::kMemory ? "memory" : "time";
  families_->projection_error.Add({{"kind", name}}, Ratios()).Observe(projected / measured);
}

void ServerMetrics::CountCacheHit(absl::string_view cache) {
  families_->cache_hits.Add({{"cache", Label(cache)}}).Increment();
}

void ServerMetrics::CountCacheMiss(absl::string_view cache) {
  families_->cache_misses.Add({{"cache", Label(cache)}}).Increment();
}

void ServerMetrics::SetSource(std::function<Reading()> source) {
  absl::MutexLock lock(&families_->mutex);
  families_->source = std::move(source);
}

std::string ServerMetrics::Text() const {
  {
    absl::MutexLock lock(&families_->mutex);
    if (families_->source) {
      const Reading reading = families_->source();
      int64_t weights = 0;
      int64_t workspace = 0;
      int64_t cache = 0;
      for (int i = 0; i < kMemoryOwnerCount; ++i) {
        const auto owner = static_cast<MemoryOwner>(i);
        const int64_t bytes = reading.ledger.by_owner[i].live_bytes;
        if (absl::StartsWith(MemoryOwnerName(owner), "weights/")) {
          weights += bytes;
        } else if (GoesWithRequest(owner)) {
          workspace += bytes;
        } else {
          cache += bytes;
        }
      }
      const auto set = [this](const char* kind, int64_t bytes) {
        families_->device_bytes.Add({{"kind", kind}}).Set(static_cast<double>(bytes));
      };
      set("weights", weights);
      set("workspace", workspace);
      set("cache", cache);
      set("free", reading.free_bytes);
      families_->queue_depth.Set(reading.queue_depth);
      const auto count = [this](absl::string_view name, uint64_t hits, uint64_t misses) {
        CountUpTo(hits, &families_->cache_hits.Add({{"cache", Label(name)}}));
        CountUpTo(misses, &families_->cache_misses.Add({{"cache", Label(name)}}));
      };
      count(kPromptCache, reading.prompt_cache_hits, reading.prompt_cache_misses);
      count(kFusedCache, reading.fused_cache_hits, reading.fused_cache_misses);
    }
  }
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace ltx::server
