#ifndef LTX_BENCH_SERVICE_LOAD_H_
#define LTX_BENCH_SERVICE_LOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ltx::bench {

/// Many clients with many jobs of hardly any work, against the real services in a process of
/// their own over loopback.
struct LoadOptions {
  int clients = 64;
  /// In all; spread over clients, and over tenants in turns.
  int jobs = 10000;
  int units = 3;
  /// That a unit takes on the fake device, a sleep.
  absl::Duration unit_time = absl::ZeroDuration();
  /// Tenants and their weights.
  std::map<std::string, double> weights = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}};
};

struct LoadReport {
  /// Jobs whose stream ended with OK and a report, and jobs that were carried out on the server.
  int finished = 0;
  int executed = 0;
  /// Jobs that ended otherwise, streams without each unit exactly once, ids that came twice.
  int failed = 0;
  int wrong_progress = 0;
  int duplicated = 0;
  /// Largest |share / fair share - 1| of a tenant among the jobs that were done while every tenant
  /// had some waiting.
  double unfairness = 0;
  /// From the moment when all jobs are queued to the last end, per unit, the device's time
  /// included.
  double microseconds_per_unit = 0;
  double submit_seconds = 0;
  double run_seconds = 0;
  /// Of Health, asked for without a pause while the device works through the queue.
  int health_calls = 0;
  double health_p50_ms = 0;
  double health_p99_ms = 0;
  /// Of the server, before, and after all is over and the heap gave back what it could.
  int64_t resident_bytes_before = 0;
  int64_t resident_bytes_after = 0;
};

/// The same load `rounds` times on one server, the first to warm it up. The server is a fork of
/// this process: call it before anything else uses gRPC or threads.
absl::StatusOr<std::vector<LoadReport>> RunServiceLoad(const LoadOptions& options, int rounds);

/// Microseconds per unit of the scheduler alone: the same jobs, submitted by as many threads.
double SchedulerMicrosecondsPerUnit(const LoadOptions& options);

}  // namespace ltx::bench

#endif  // LTX_BENCH_SERVICE_LOAD_H_
