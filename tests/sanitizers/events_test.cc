#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/parallel.h"

namespace ltx::testing {
namespace {

using ::testing::ExitedWithCode;

/// What ThreadSanitizer ends a program with that had a report.
constexpr int kReported = 66;

/// All `bodies` at a time, each on a thread of its own.
void Together(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::thread> threads;
  threads.reserve(bodies.size());
  for (const auto& body : bodies) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

/// A number that only its user guards, and a mutex to do so.
struct Guarded {
  absl::Mutex mutex;
  int number = 0;
};

/// Ends the process with what ThreadSanitizer thinks of `program`.
void RunAndExit(const std::function<void()>& program) {
  program();
  std::exit(0);
}

// Each program runs in a process of its own: a report would fail this one.
class EventsTest : public ::testing::Test {
 protected:
  EventsTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void ExpectClean(const std::function<void()>& program) {
    EXPECT_EXIT(RunAndExit(program), ExitedWithCode(0), "");
  }
  static void ExpectRace(const std::function<void()>& program) {
    EXPECT_EXIT(RunAndExit(program), ExitedWithCode(kReported), "data race");
  }
};

TEST_F(EventsTest, UnguardedNumberIsARace) {
  ExpectRace([] {
    Guarded guarded;
    Together({[&] { ++guarded.number; }, [&] { ++guarded.number; }});
  });
}

TEST_F(EventsTest, WritersUnderReaderLocksAreARace) {
  ExpectRace([] {
    Guarded guarded;
    const auto write = [&] {
      const absl::ReaderMutexLock lock(&guarded.mutex);
      ++guarded.number;
    };
    Together({write, write});
  });
}

TEST_F(EventsTest, WaitGivesTheMutexUp) {
  // The write between Lock() and the wait's end is the waiter's own, the other one nobody's.
  ExpectRace([] {
    Guarded guarded;
    absl::CondVar changed;
    int other = 0;
    Together({[&] {
                const absl::MutexLock lock(&guarded.mutex);
                while (guarded.number == 0) changed.Wait(&guarded.mutex);
                ++other;
              },
              [&] {
                {
                  const absl::MutexLock lock(&guarded.mutex);
                  guarded.number = 1;
                  changed.Signal();
                }
                ++other;
              }});
  });
}

TEST_F(EventsTest, LocksOrderTheirOwners) {
  ExpectClean([] {
    Guarded guarded;
    const auto write = [&] {
      const absl::MutexLock lock(&guarded.mutex);
      ++guarded.number;
    };
    const auto read = [&] {
      const absl::ReaderMutexLock lock(&guarded.mutex);
      return guarded.number;
    };
    const auto try_write = [&] {
      if (!guarded.mutex.TryLock()) return;
      ++guarded.number;
      guarded.mutex.Unlock();
    };
    const auto try_read = [&] {
      if (!guarded.mutex.ReaderTryLock()) return 0;
      const int number = guarded.number;
      guarded.mutex.ReaderUnlock();
      return number;
    };
    Together({write, read, try_write, try_read, write, read, try_write, try_read});
  });
}

TEST_F(EventsTest, WaitsOrderTheirThreads) {
  ExpectClean([] {
    Guarded guarded;
    absl::CondVar changed;
    int data = 0;
    const absl::Condition is_set(
        +[](int* number) { return *number == 1; }, &guarded.number);
    const auto by_condition = [&] {
      const absl::MutexLock lock(&guarded.mutex, is_set);
      return data;
    };
    const auto by_await = [&] {
      const absl::MutexLock lock(&guarded.mutex);
      while (!guarded.mutex.AwaitWithTimeout(is_set, absl::Milliseconds(1))) {
      }
      guarded.mutex.Await(is_set);
      return data;
    };
    const auto by_shared_await = [&] {
      const absl::ReaderMutexLock lock(&guarded.mutex);
      guarded.mutex.Await(is_set);
      return data;
    };
    const auto by_timeout = [&] {
      while (true) {
        const bool done = guarded.mutex.ReaderLockWhenWithTimeout(is_set, absl::Milliseconds(1));
        const int seen = done ? data : 0;
        guarded.mutex.ReaderUnlock();
        if (done) return seen;
      }
    };
    const auto by_signal = [&] {
      const absl::MutexLock lock(&guarded.mutex);
      while (guarded.number == 0) changed.WaitWithTimeout(&guarded.mutex, absl::Milliseconds(1));
      while (guarded.number == 0) changed.Wait(&guarded.mutex);
      return data;
    };
    const auto set = [&] {
      absl::SleepFor(absl::Milliseconds(5));
      data = 7;
      const absl::MutexLock lock(&guarded.mutex);
      guarded.number = 1;
      changed.SignalAll();
    };
    Together({by_condition, by_await, by_shared_await, by_timeout, by_signal, set});
  });
}

TEST_F(EventsTest, NotificationsAndCountersOrderTheirThreads) {
  ExpectClean([] {
    absl::Notification notified;
    absl::BlockingCounter two(2);
    int first = 0;
    int second = 0;
    int third = 0;
    Together({[&] {
                first = 1;
                two.DecrementCount();
              },
              [&] {
                second = 1;
                two.DecrementCount();
              },
              [&] {
                two.Wait();
                third = first + second;
                notified.Notify();
              },
              [&] {
                while (!notified.HasBeenNotified()) absl::SleepFor(absl::Milliseconds(1));
                EXPECT_EQ(third, 2);
              },
              [&] {
                notified.WaitForNotification();
                EXPECT_EQ(third, 2);
              },
              [&] {
                while (!notified.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
                }
                EXPECT_EQ(third, 2);
              }});
  });
}

TEST_F(EventsTest, OpenMpRegionsOrderTheirThreads) {
  ExpectClean([] {
    constexpr int64_t kCount = 64;
    std::vector<int> numbers(kCount, 1);
    for (int repeat = 0; repeat < 3; ++repeat) {
      // The caller's variables are read, and other parts than in the last region written.
      cpu::ParallelFor(4, kCount, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) numbers[kCount - 1 - i] += repeat;
      });
      for (int& number : numbers) ++number;
    }
    EXPECT_EQ(numbers, std::vector<int>(kCount, 1 + 3 + 3));
  });
}

TEST_F(EventsTest, OneNumberForAllThreadsOfARegionIsARace) {
  ExpectRace([] {
    int sum = 0;
    cpu::ParallelFor(4, 64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  });
}

}  // namespace
}  // namespace ltx::testing
