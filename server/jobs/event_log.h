#ifndef LTX_SERVER_JOBS_EVENT_LOG_H_
#define LTX_SERVER_JOBS_EVENT_LOG_H_

#include <cstdint>
#include <deque>

#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::server {

/// The newest events of a job, numbered from 1. Bounded: the oldest make room, their numbers are
/// not given again. Not thread-safe.
class EventLog {
 public:
  explicit EventLog(int capacity) : capacity_(capacity) {}

  /// Gives the event its number.
  void Append(v1::GenerateVideoEvent event);
  /// The first kept event with this number or a later one; null if there is none yet.
  const v1::GenerateVideoEvent* From(int64_t number) const;
  /// Of the newest event; 0 before the first.
  int64_t last_number() const { return last_number_; }
  const std::deque<v1::GenerateVideoEvent>& events() const { return events_; }

  /// Takes an event that has its number already; numbers must rise.
  void Restore(v1::GenerateVideoEvent event);

 private:
  int capacity_;
  std::deque<v1::GenerateVideoEvent> events_;
  int64_t last_number_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_EVENT_LOG_H_
