#include "client/interrupt_watcher.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "client/failure.h"

namespace ltx::client {

InterruptWatcher::InterruptWatcher() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this, set] {
    while (true) {
      int signal = 0;
      sigwait(&set, &signal);
      if (stop_.load()) return;
      VideoClient* const client = client_.load();
      if (client == nullptr) _exit(kInterruptedExit);
      client->Cancel();
    }
  });
}

InterruptWatcher::~InterruptWatcher() {
  stop_.store(true);
  // Wakes the thread, and it alone: nobody who wants a clip should wait for a tick.
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

}  // namespace ltx::client
