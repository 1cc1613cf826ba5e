#ifndef LTX_SERVER_JOBS_HEARTBEAT_H_
#define LTX_SERVER_JOBS_HEARTBEAT_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/jobs/job_stream.h"

namespace ltx::server {

/// A thread that once a second keeps quiet streams alive, and whatever else has to happen now and
/// then.
class Heartbeat {
 public:
  explicit Heartbeat(std::function<void(absl::Time now)> on_tick);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void Add(std::weak_ptr<JobStream> stream);

 private:
  void Loop();

  const std::function<void(absl::Time now)> on_tick_;
  absl::Mutex mutex_;
  std::vector<std::weak_ptr<JobStream>> streams_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_HEARTBEAT_H_
