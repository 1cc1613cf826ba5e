#ifndef LTX_SERVER_CANCELLATION_H_
#define LTX_SERVER_CANCELLATION_H_

#include <atomic>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace ltx::server {

/// Whether one job should go on: until somebody cancels it or its deadline passes. Of one job only;
/// nothing here outlives it. Thread-safe.
class Cancellation {
 public:
  explicit Cancellation(absl::Time deadline) : deadline_(deadline) {}

  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  absl::Time deadline() const { return deadline_; }

  /// OK, DEADLINE_EXCEEDED or CANCELLED. A call past its deadline is cancelled by gRPC too: the
  /// deadline is the truer reason, so it is looked at first.
  absl::Status Check() const {
    if (absl::Now() >= deadline_) return absl::DeadlineExceededError("the deadline has passed");
    if (cancelled_.load(std::memory_order_relaxed)) {
      return absl::CancelledError("the job was cancelled");
    }
    return absl::OkStatus();
  }

 private:
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace ltx::server

#endif  // LTX_SERVER_CANCELLATION_H_
