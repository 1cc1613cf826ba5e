// Tells ThreadSanitizer what Abseil's locks do. The distribution's Abseil is built without it, so
// that it would see a race in whatever an absl::Mutex guards. The functions here take the place of
// Abseil's in the program, for gRPC's libraries too, and put the calls of Abseil's own
// instrumentation (ABSL_TSAN_MUTEX_* in its mutex.cc) around the library's functions.
//
// Between "pre" and "post" ThreadSanitizer ignores what the thread does: the conditions of Await()
// and LockWhen(), which Abseil evaluates in there on whatever thread gives the mutex up, are not
// checked.
//
// The ...WithTimeout forms of Mutex and CondVar are absent because the library's call the
// ...WithDeadline forms, and MutexLock and the like because they call Mutex.

#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <cstdint>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/sanitizers/next_function.h"

namespace {

using absl::BlockingCounter;
using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;
using ltx::testing::NextFunction;

NextFunction<void(Mutex*)> next_destroy("_ZN4absl7debian35MutexD1Ev");
NextFunction<void(Mutex*)> next_lock("_ZN4absl7debian35Mutex4LockEv");
NextFunction<void(Mutex*)> next_unlock("_ZN4absl7debian35Mutex6UnlockEv");
NextFunction<bool(Mutex*)> next_try_lock("_ZN4absl7debian35Mutex7TryLockEv");
NextFunction<void(Mutex*)> next_reader_lock("_ZN4absl7debian35Mutex10ReaderLockEv");
NextFunction<void(Mutex*)> next_reader_unlock("_ZN4absl7debian35Mutex12ReaderUnlockEv");
NextFunction<bool(Mutex*)> next_reader_try_lock("_ZN4absl7debian35Mutex13ReaderTryLockEv");
NextFunction<void(Mutex*, const Condition&)> next_await(
    "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
NextFunction<bool(Mutex*, const Condition&, Time)> next_await_with_deadline(
    "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
NextFunction<void(Mutex*, const Condition&)> next_lock_when(
    "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
NextFunction<bool(Mutex*, const Condition&, Time)> next_lock_when_with_deadline(
    "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
NextFunction<void(Mutex*, const Condition&)> next_reader_lock_when(
    "_ZN4absl7debian35Mutex14ReaderLockWhenERKNS0_9ConditionE");
NextFunction<bool(Mutex*, const Condition&, Time)> next_reader_lock_when_with_deadline(
    "_ZN4absl7debian35Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
NextFunction<void(CondVar*, Mutex*)> next_wait("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
NextFunction<bool(CondVar*, Mutex*, Time)> next_wait_with_deadline(
    "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
NextFunction<void(Notification*)> next_notify("_ZN4absl7debian312Notification6NotifyEv");
NextFunction<void(const Notification*)> next_notification_wait(
    "_ZNK4absl7debian312Notification19WaitForNotificationEv");
NextFunction<bool(const Notification*, Duration)> next_notification_wait_with_timeout(
    "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
NextFunction<bool(const Notification*, Time)> next_notification_wait_with_deadline(
    "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
NextFunction<bool(BlockingCounter*)> next_decrement_count(
    "_ZN4absl7debian315BlockingCounter14DecrementCountEv");
NextFunction<void(BlockingCounter*)> next_counter_wait("_ZN4absl7debian315BlockingCounter4WaitEv");

constexpr unsigned kExclusive = 0;
constexpr unsigned kShared = __tsan_mutex_read_lock;

/// The scope in which a mutex is taken.
class Locking {
 public:
  Locking(Mutex* mutex, unsigned how) : mutex_(mutex), how_(how) {
    __tsan_mutex_pre_lock(mutex, how);
  }
  ~Locking() { __tsan_mutex_post_lock(mutex_, how_, 0); }
  Locking(const Locking&) = delete;
  Locking& operator=(const Locking&) = delete;

  /// The result of a function that only tries.
  bool Tried(bool locked) {
    if (!locked) how_ |= __tsan_mutex_try_lock_failed;
    return locked;
  }

 private:
  Mutex* const mutex_;
  unsigned how_;
};

/// The scope in which a mutex is given up.
class Unlocking {
 public:
  Unlocking(Mutex* mutex, unsigned how) : mutex_(mutex), how_(how) {
    __tsan_mutex_pre_unlock(mutex, how);
  }
  ~Unlocking() { __tsan_mutex_post_unlock(mutex_, how_); }
  Unlocking(const Unlocking&) = delete;
  Unlocking& operator=(const Unlocking&) = delete;

 private:
  Mutex* const mutex_;
  const unsigned how_;
};

/// How the caller, who has the mutex, holds it.
unsigned HowHeld(const Mutex* mutex) {
  // Bit 3 of a mutex's only word is kMuWriter in Abseil's mutex.cc.
  constexpr intptr_t kWriter = 8;
  static_assert(sizeof(Mutex) == sizeof(std::atomic<intptr_t>));
  const auto* const word = reinterpret_cast<const std::atomic<intptr_t>*>(mutex);
  return (word->load(std::memory_order_relaxed) & kWriter) != 0 ? kExclusive : kShared;
}

/// The scope of a wait: the mutex, which the caller holds, is given up and taken again.
class Waiting {
 public:
  explicit Waiting(Mutex* mutex) : how_(HowHeld(mutex)), locking_(GiveUp(mutex, how_), how_) {}

 private:
  static Mutex* GiveUp(Mutex* mutex, unsigned how) {
    const Unlocking unlocking(mutex, how);
    return mutex;
  }

  const unsigned how_;
  const Locking locking_;
};

/// The flag behind Notification::HasBeenNotified(), which is inline and reads it without the mutex.
void* FlagOf(const Notification* notification) {
  static_assert(sizeof(Notification) == 2 * sizeof(Mutex));
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) + sizeof(Mutex);
}

/// What a wait returned, ordered after Notify() if that was what ended it.
bool Waited(const Notification* notification, bool notified) {
  if (notified) __tsan_acquire(FlagOf(notification));
  return notified;
}

/// Abseil's table of time zones is made at its first use, by a static whose guard is read inline.
/// Made before there are threads, it needs no order.
const absl::TimeZone kTimeZone = absl::LocalTimeZone();

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  // A scope as of an unlocking: the library takes the mutex out of its graph of all mutexes.
  __tsan_mutex_pre_signal(this, 0);
  next_destroy(this);
  __tsan_mutex_post_signal(this, 0);
  __tsan_mutex_destroy(this, __tsan_mutex_not_static);
}

void Mutex::Lock() {
  const Locking locking(this, kExclusive);
  next_lock(this);
}

void Mutex::Unlock() {
  const Unlocking unlocking(this, kExclusive);
  next_unlock(this);
}

bool Mutex::TryLock() {
  Locking locking(this, kExclusive | __tsan_mutex_try_lock);
  return locking.Tried(next_try_lock(this));
}

void Mutex::ReaderLock() {
  const Locking locking(this, kShared);
  next_reader_lock(this);
}

void Mutex::ReaderUnlock() {
  const Unlocking unlocking(this, kShared);
  next_reader_unlock(this);
}

bool Mutex::ReaderTryLock() {
  Locking locking(this, kShared | __tsan_mutex_try_lock);
  return locking.Tried(next_reader_try_lock(this));
}

void Mutex::Await(const Condition& condition) {
  const Waiting waiting(this);
  next_await(this, condition);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  const Waiting waiting(this);
  return next_await_with_deadline(this, condition, deadline);
}

void Mutex::LockWhen(const Condition& condition) {
  const Locking locking(this, kExclusive);
  next_lock_when(this, condition);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  const Locking locking(this, kExclusive);
  return next_lock_when_with_deadline(this, condition, deadline);
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  const Locking locking(this, kShared);
  next_reader_lock_when(this, condition);
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition, Time deadline) {
  const Locking locking(this, kShared);
  return next_reader_lock_when_with_deadline(this, condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  const Waiting waiting(mutex);
  next_wait(this, mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  const Waiting waiting(mutex);
  return next_wait_with_deadline(this, mutex, deadline);
}

void Notification::Notify() {
  __tsan_release(FlagOf(this));
  next_notify(this);
}

// The waits take the mutex only if the flag is not set yet.
void Notification::WaitForNotification() const {
  next_notification_wait(this);
  Waited(this, true);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  return Waited(this, next_notification_wait_with_timeout(this, timeout));
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  return Waited(this, next_notification_wait_with_deadline(this, deadline));
}

// Only the last decrement takes the counter's mutex; the others are ordered by its atomic number.
bool BlockingCounter::DecrementCount() {
  __tsan_release(this);
  return next_decrement_count(this);
}

void BlockingCounter::Wait() {
  next_counter_wait(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
