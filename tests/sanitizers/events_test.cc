#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/cpu/parallel.h"
#include "tests/sanitizers/program_test.h"

namespace ltx::testing {
namespace {

/// Too long to be kept inside a string or a cord.
constexpr char kMessage[] = "the quick brown fox jumps over the lazy dog";

/// A number that only its user guards, and a mutex to do so.
struct Guarded {
  absl::Mutex mutex;
  int number = 0;
};

using EventsTest = ProgramTest;

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

TEST_F(EventsTest, MutexesEndAtATime) {
  ExpectClean([] {
    // Abseil's graph of all mutexes knows those that were held, and grows a list when they end.
    using Mutexes = std::array<absl::Mutex, 500>;
    auto first = std::make_unique<Mutexes>();
    auto second = std::make_unique<Mutexes>();
    for (Mutexes* mutexes : {first.get(), second.get()}) {
      for (absl::Mutex& mutex : *mutexes) absl::MutexLock lock(&mutex);
    }
    Together({[&] { first.reset(); }, [&] { second.reset(); }});
  });
}

TEST_F(EventsTest, TimeZonesAreThereForAllThreads) {
  ExpectClean([] {
    const auto use = [] { EXPECT_NE(absl::LocalTimeZone().name(), ""); };
    Together({use, use});
  });
}

TEST_F(EventsTest, OneStatusForAllThreadsIsARace) {
  ExpectRace([] {
    absl::Status status;
    const auto write = [&] { status = absl::InternalError(kMessage); };
    Together({write, write});
  });
}

TEST_F(EventsTest, CopiesOfAStatusOrderTheirOwners) {
  ExpectClean([] {
    auto first = std::make_unique<absl::Status>(absl::InternalError(kMessage));
    auto second = std::make_unique<absl::Status>(*first);
    // Who reads last frees what both share.
    const auto read = [](std::unique_ptr<absl::Status>* status) {
      EXPECT_EQ(std::string((*status)->message()), kMessage);
      status->reset();
    };
    Together({[&] { read(&first); }, [&] { read(&second); }});
  });
}

TEST_F(EventsTest, WhoHasAStatusComesAfterWhoMadeIt) {
  ExpectClean([] {
    // As in gRPC's queues, whose order cannot be seen.
    std::aligned_storage_t<sizeof(absl::Status), alignof(absl::Status)> place;
    std::atomic<absl::Status*> queue{nullptr};
    Together({[&] {
                auto* const made = new (&place) absl::Status(absl::StatusCode::kInternal, kMessage);
                made->SetPayload("url", absl::Cord(kMessage));
                queue.store(made, std::memory_order_relaxed);
              },
              [&] {
                absl::Status* taken = nullptr;
                while (taken == nullptr) taken = queue.load(std::memory_order_relaxed);
                EXPECT_EQ(taken->GetPayload("url"), kMessage);
                taken->ForEachPayload([](absl::string_view, const absl::Cord& payload) {
                  EXPECT_EQ(std::string(payload), kMessage);
                });
                EXPECT_NE(*taken, absl::InternalError(kMessage));
                EXPECT_NE(taken->ToString(), "");
                taken->~Status();
              }});
  });
}

TEST_F(EventsTest, AConnectionIsFreedAfterItsUse) {
  ExpectClean([] {
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                               SSL_CTX_free);
    SSL* const connection = SSL_new(context.get());
    BIO* inner = nullptr;
    BIO* outer = nullptr;
    ASSERT_EQ(BIO_new_bio_pair(&inner, 0, &outer, 0), 1);
    SSL_set_bio(connection, inner, inner);
    SSL_set_connect_state(connection);
    // As gRPC's count of references, whose order cannot be seen.
    std::atomic<bool> unused{false};
    Together({[&] {
                EXPECT_EQ(SSL_do_handshake(connection), -1);
                std::array<char, 1024> hello;
                EXPECT_GT(BIO_read(outer, hello.data(), hello.size()), 0);
                EXPECT_EQ(SSL_read(connection, hello.data(), hello.size()), -1);
                unused.store(true, std::memory_order_relaxed);
              },
              [&] {
                while (!unused.load(std::memory_order_relaxed)) {
                }
                SSL_free(connection);
                BIO_free(outer);
              }});
  });
}

}  // namespace
}  // namespace ltx::testing
