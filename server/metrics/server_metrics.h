#ifndef LTX_SERVER_METRICS_SERVER_METRICS_H_
#define LTX_SERVER_METRICS_SERVER_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/memory_ledger.h"

namespace ltx::server {

/// Caches that are counted, for the label `cache`.
inline constexpr absl::string_view kPromptCache = "prompt";
inline constexpr absl::string_view kFusedCache = "fused";
inline constexpr absl::string_view kConditionCache = "condition";

/// What a projection is about, for the label `kind`.
enum class ProjectionKind : uint8_t { kMemory, kTime };

/// The server's figures in Prometheus' terms, docs/metrics.md lists them. One object, passed to
/// whoever has something to tell. Thread-safe; every call takes well under a microsecond or two and
/// never blocks on a scrape.
///
/// Labels must come from closed sets (names of recipes, rungs, phases and reasons), never from a
/// request's free text: each distinct value is a time series for good.
class ServerMetrics {
 public:
  /// What is read when somebody looks: amounts that other objects own.
  struct Reading {
    MemoryLedger::Snapshot ledger;
    /// Bytes of the device that are free for anybody, as the system says; not of the ledger.
    int64_t free_bytes = 0;
    /// Jobs that wait.
    int queue_depth = 0;
    /// Of the cache of prompts, since the start.
    uint64_t prompt_cache_hits = 0;
    uint64_t prompt_cache_misses = 0;
    /// Of the transformers with an adapter.
    uint64_t fused_cache_hits = 0;
    uint64_t fused_cache_misses = 0;
  };

  ServerMetrics();
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  /// A request has ended, in whatever way. `mode` is the recipe, `rung` the governor's rung, either
  /// empty if the request was refused before it had one ("none" on the wire).
  void CountRequest(absl::string_view mode, absl::string_view rung, absl::StatusCode code);
  /// A request was refused before it ran, for a reason of reasons.h or error_details.h.
  void CountRefusal(absl::string_view reason);

  /// Seconds from arrival to admission of one job.
  void ObserveQueueSeconds(double seconds);

  /// Seconds that one job spent in a phase: "text", "stage1", "upsample", "stage2", "vdecode",
  /// "adecode", "mux".
  void ObservePhaseSeconds(absl::string_view phase, double seconds);
  /// Seconds of one denoising step; `precision` is the compute dtype, "f32" or "bf16".
  void ObserveStepSeconds(absl::string_view rung, absl::string_view precision, double seconds);

  /// One finished job: what was projected against what it took. The ratio projected / measured is
  /// recorded; nothing is if `measured` is not positive.
  void ObserveProjection(ProjectionKind kind, double projected, double measured);

  void CountCacheHit(absl::string_view cache);
  void CountCacheMiss(absl::string_view cache);

  /// Where a Reading comes from; called on every Text() until the next SetSource(). Pass an empty
  /// function before what it reads goes away.
  void SetSource(std::function<Reading()> source);

  /// Everything in Prometheus' text format, version 0.0.4.
  std::string Text() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_METRICS_SERVER_METRICS_H_
