#ifndef LTX_SERVER_SCHEDULER_CANCELLATION_H_
#define LTX_SERVER_SCHEDULER_CANCELLATION_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/pipeline/error_details.h"
#include "server/reasons.h"

namespace ltx::server {

/// UNAVAILABLE, reason DRAINING: another server, or this one later, can do it.
inline absl::Status ShuttingDown() {
  return pipeline::WithDetail(absl::UnavailableError("the server is shutting down"),
                              {std::string(kReasonDraining), "", "", ""});
}

/// Whether one job should go on: until somebody cancels it, the server has to stop, or its deadline
/// passes. Of one job only; nothing here outlives it. Thread-safe.
class Cancellation {
 public:
  explicit Cancellation(absl::Time deadline) : deadline_(deadline) {}

  /// The client wants no more.
  void Cancel() { End(Cause::kClient); }
  /// The server shuts down and cannot wait for the job.
  void Abandon() { End(Cause::kShutdown); }
  absl::Time deadline() const { return deadline_; }

  /// OK, DEADLINE_EXCEEDED, CANCELLED, or UNAVAILABLE (reason DRAINING) if abandoned. A call past
  /// its deadline is cancelled by gRPC too: the deadline is the truer reason, so it is looked at
  /// first.
  absl::Status Check() const {
    if (absl::Now() >= deadline_) return absl::DeadlineExceededError("the deadline has passed");
    switch (cause_.load(std::memory_order_relaxed)) {
      case Cause::kNone:
        break;
      case Cause::kClient:
        return absl::CancelledError("the job was cancelled");
      case Cause::kShutdown:
        return ShuttingDown();
    }
    return absl::OkStatus();
  }

 private:
  enum class Cause : uint8_t { kNone, kClient, kShutdown };

  /// The first cause counts.
  void End(Cause cause) {
    Cause none = Cause::kNone;
    cause_.compare_exchange_strong(none, cause, std::memory_order_relaxed);
  }

  const absl::Time deadline_;
  std::atomic<Cause> cause_{Cause::kNone};
};

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_CANCELLATION_H_
