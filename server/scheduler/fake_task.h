#ifndef LTX_SERVER_SCHEDULER_FAKE_TASK_H_
#define LTX_SERVER_SCHEDULER_FAKE_TASK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/scheduler/task.h"

namespace ltx::server {

/// What happens to the jobs of a test, one line each in the order in which it happens:
/// "JOB queued 2", "JOB starts", "JOB unit 1", "JOB freed", "JOB ends OK". Thread-safe.
class Journal {
 public:
  void Write(const std::string& line);
  std::vector<std::string> Lines() const;
  /// Lines that hold `text`.
  std::vector<std::string> Lines(const std::string& text) const;
  /// Waits until some line is `line`; fails the test after a minute.
  void WaitFor(const std::string& line) const;

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

/// A task of some units that cost what they are said to cost and take no time.
class FakeTask final : public Task {
 public:
  struct Options {
    int units = 1;
    double unit_seconds = 1;
    /// Called in every unit, from 1.
    std::function<absl::Status(int unit)> run;
  };
  /// `journal` may be null.
  FakeTask(std::string id, Options options, Journal* journal)
      : id_(std::move(id)), options_(std::move(options)), journal_(journal) {}
  ~FakeTask() override;

  absl::Status Start(int device) override;
  absl::StatusOr<UnitOutcome> AdvanceUnit() override;

 private:
  void Write(const std::string& what) const;

  const std::string id_;
  const Options options_;
  Journal* const journal_;
  int unit_ = 0;
};

/// Writes what it hears into a journal.
class JournalListener final : public JobListener {
 public:
  JournalListener(std::string id, Journal* journal) : id_(std::move(id)), journal_(journal) {}
  void OnQueued(int ahead) override;
  void OnStarted() override;
  void OnSuspended() override;
  void OnResumed() override;
  void OnEnd(const absl::Status& status) override;

 private:
  const std::string id_;
  Journal* const journal_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_FAKE_TASK_H_
