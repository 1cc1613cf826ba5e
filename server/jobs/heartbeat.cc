#include "server/jobs/heartbeat.h"

#include <utility>

#include "absl/time/clock.h"

namespace ltx::server {
namespace {

/// Ten times as often as streams may be silent.
constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

Heartbeat::Heartbeat(std::function<void(absl::Time now)> on_tick)
    : on_tick_(std::move(on_tick)), thread_([this] { Loop(); }) {}

Heartbeat::~Heartbeat() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void Heartbeat::Add(std::weak_ptr<JobStream> stream) {
  absl::MutexLock lock(&mutex_);
  streams_.push_back(std::move(stream));
}

void Heartbeat::Loop() {
  while (true) {
    std::vector<std::shared_ptr<JobStream>> alive;
    {
      absl::MutexLock lock(&mutex_);
      const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_; };
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped), kTick)) return;
      std::vector<std::weak_ptr<JobStream>> kept;
      for (const std::weak_ptr<JobStream>& weak : streams_) {
        if (std::shared_ptr<JobStream> stream = weak.lock()) {
          alive.push_back(std::move(stream));
          kept.push_back(weak);
        }
      }
      streams_ = std::move(kept);
    }
    const absl::Time now = absl::Now();
    for (const std::shared_ptr<JobStream>& stream : alive) stream->Heartbeat(now);
    if (on_tick_) on_tick_(now);
  }
}

}  // namespace ltx::server
