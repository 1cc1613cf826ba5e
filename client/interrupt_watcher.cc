#include "client/interrupt_watcher.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>

#include "client/failure.h"

namespace ltx::client {

InterruptWatcher::InterruptWatcher() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, set] {
    // Wakes up often enough to end with its owner.
    const timespec tick = {0, 100 * 1000 * 1000};
    while (!stop_.load()) {
      if (sigtimedwait(&set, nullptr, &tick) <= 0) continue;
      VideoClient* const client = client_.load();
      if (client == nullptr) _exit(kInterruptedExit);
      client->Cancel();
    }
  });
}

InterruptWatcher::~InterruptWatcher() {
  stop_.store(true);
  thread_.join();
}

}  // namespace ltx::client
