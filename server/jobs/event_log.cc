#include "server/jobs/event_log.h"

#include <algorithm>
#include <utility>

namespace ltx::server {

void EventLog::Append(v1::GenerateVideoEvent event) {
  event.set_number(last_number_ + 1);
  Restore(std::move(event));
}

void EventLog::Restore(v1::GenerateVideoEvent event) {
  if (event.number() <= last_number_) return;
  last_number_ = event.number();
  if (static_cast<int>(events_.size()) == capacity_) events_.pop_front();
  events_.push_back(std::move(event));
}

const v1::GenerateVideoEvent* EventLog::From(int64_t number) const {
  const auto found = std::lower_bound(
      events_.begin(), events_.end(), number,
      [](const v1::GenerateVideoEvent& event, int64_t n) { return event.number() < n; });
  return found == events_.end() ? nullptr : &*found;
}

}  // namespace ltx::server
