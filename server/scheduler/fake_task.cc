#include "server/scheduler/fake_task.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace ltx::server {

void Journal::Write(const std::string& line) {
  absl::MutexLock lock(&mutex_);
  lines_.push_back(line);
}

std::vector<std::string> Journal::Lines() const { return Lines(""); }

std::vector<std::string> Journal::Lines(const std::string& text) const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> lines;
  for (const std::string& line : lines_) {
    if (absl::StrContains(line, text)) lines.push_back(line);
  }
  return lines;
}

void Journal::WaitFor(const std::string& line) const {
  absl::MutexLock lock(&mutex_);
  const auto found = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::find(lines_.begin(), lines_.end(), line) != lines_.end();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&found), absl::Minutes(1))) {
    ADD_FAILURE() << "no line \"" << line << "\" in\n" << absl::StrJoin(lines_, "\n");
  }
}

FakeTask::~FakeTask() { Write("freed"); }

void FakeTask::Write(const std::string& what) const {
  if (journal_ != nullptr) journal_->Write(absl::StrCat(id_, " ", what));
}

absl::Status FakeTask::Start(int device) {
  Write(absl::StrCat("on device ", device));
  return absl::OkStatus();
}

absl::StatusOr<UnitOutcome> FakeTask::AdvanceUnit() {
  ++unit_;
  Write(absl::StrCat("unit ", unit_));
  if (options_.run) {
    const absl::Status status = options_.run(unit_);
    if (!status.ok()) return status;
  }
  return UnitOutcome{unit_ == options_.units, options_.unit_seconds};
}

void JournalListener::OnQueued(int ahead) { journal_->Write(absl::StrCat(id_, " queued ", ahead)); }
void JournalListener::OnStarted() { journal_->Write(id_ + " starts"); }
void JournalListener::OnSuspended() { journal_->Write(id_ + " suspended"); }
void JournalListener::OnResumed() { journal_->Write(id_ + " resumed"); }
void JournalListener::OnEnd(const absl::Status& status) {
  journal_->Write(absl::StrCat(id_, " ends ", absl::StatusCodeToString(status.code())));
}

}  // namespace ltx::server
