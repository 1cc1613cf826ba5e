#ifndef LTX_CLIENT_INTERRUPT_WATCHER_H_
#define LTX_CLIENT_INTERRUPT_WATCHER_H_

#include <atomic>
#include <thread>

#include "client/video_client.h"

namespace ltx::client {

/// Turns Ctrl-C into a cancellation of the client's call while it lives; before there is a client
/// it ends the program. Make it before other threads start, since they inherit the blocked signals.
class InterruptWatcher {
 public:
  InterruptWatcher();
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  void Watch(VideoClient* client) { client_.store(client); }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<VideoClient*> client_{nullptr};
  std::thread thread_;
};

}  // namespace ltx::client

#endif  // LTX_CLIENT_INTERRUPT_WATCHER_H_
