#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/fake_task.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/scheduler_fixture.h"

namespace ltx::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A load of interactive jobs without a gap: each asks for the next one while it runs, until
/// `enough` says so or there were `kMost`.
class InteractiveLoad {
 public:
  static constexpr int kMost = 1000;

  InteractiveLoad(Scheduler* scheduler, Journal* journal, std::function<bool()> enough)
      : scheduler_(scheduler), journal_(journal), enough_(std::move(enough)) {}

  void SubmitNext() {
    const std::string id = absl::StrCat("i", ++count_);
    const FakeTask::Options options = {1, 1, [this](int) {
                                         if (count_ < kMost && !enough_()) SubmitNext();
                                         return absl::OkStatus();
                                       }};
    const absl::Status status = scheduler_->Submit(Spec(id, JobClass::kInteractive, "hasty"),
                                                   std::make_unique<FakeTask>(id, options, nullptr),
                                                   std::make_shared<JournalListener>(id, journal_));
    EXPECT_TRUE(status.ok()) << status;
  }

 private:
  Scheduler* const scheduler_;
  Journal* const journal_;
  const std::function<bool()> enough_;
  int count_ = 0;
};

/// Who has the device up to that line, interactive jobs in a row as one.
std::vector<std::string> Turns(const Journal& journal, const std::string& last) {
  std::vector<std::string> turns;
  for (const std::string& line : journal.Lines()) {
    if (line == last) break;
    if (line.find(" starts") == std::string::npos && line.find(" resumed") == std::string::npos &&
        line.find(" suspended") == std::string::npos) {
      continue;
    }
    const std::string turn = line[0] == 'i' ? "interactive" : line;
    if (turns.empty() || turns.back() != turn) turns.push_back(turn);
  }
  return turns;
}

class AgeingTest : public SchedulerTest {
 protected:
  /// Interactive jobs of one second each without end, and two batch jobs behind the first of them.
  void Run(double ageing_seconds) {
    SchedulerOptions options = Capacity(100);
    options.batch_ageing_seconds = ageing_seconds;
    Make(options);
    InteractiveLoad load(scheduler_.get(), &journal_,
                         [this] { return !journal_.Lines("second ends OK").empty(); });
    absl::Notification go_on;
    MustSubmit(Spec("holder", JobClass::kInteractive), Held(1, &go_on));
    journal_.WaitFor("holder unit 1");
    MustSubmit(Spec("first"), Units(3));
    MustSubmit(Spec("second"), Units(3));
    load.SubmitNext();
    go_on.Notify();
    for (const char* id : {"first", "second"}) journal_.WaitFor(absl::StrCat(id, " ends OK"));
    WaitIdle();
  }
  /// Of interactive jobs before that line.
  int StartsBefore(const std::string& line) const {
    int starts = 0;
    for (const std::string& other : journal_.Lines()) {
      if (other == line) break;
      if (other[0] == 'i' && other.find(" starts") != std::string::npos) ++starts;
    }
    return starts;
  }
};

TEST_F(AgeingTest, ABatchJobHasItsTurnUnderAnyLoad) {
  Run(/*ageing_seconds=*/10);
  EXPECT_THAT(
      Turns(journal_, "second ends OK"),
      ElementsAre("holder starts", "interactive", "first starts", "interactive", "second starts"));
  // The holder's second counts, too.
  EXPECT_EQ(StartsBefore("first starts"), 9);
  EXPECT_EQ(StartsBefore("second starts"), 19);
  EXPECT_THAT(journal_.Lines("suspended"), IsEmpty());
}

TEST_F(AgeingTest, ZeroLetsInteractiveJobsGoFirstForEver) {
  Run(/*ageing_seconds=*/0);
  EXPECT_EQ(StartsBefore("first starts"), InteractiveLoad::kMost);
}

TEST_F(AgeingTest, TimeInWhichNoBatchJobWaitsDoesNotCount) {
  SchedulerOptions options = Capacity(100);
  options.batch_ageing_seconds = 10;
  Make(options);
  MustSubmit(Spec("alone", JobClass::kInteractive), Units(20));
  journal_.WaitFor("alone ends OK");
  InteractiveLoad load(scheduler_.get(), &journal_,
                       [this] { return !journal_.Lines("batch starts").empty(); });
  HoldDevice();
  MustSubmit(Spec("batch"));
  load.SubmitNext();
  Release();
  journal_.WaitFor("batch ends OK");
  WaitIdle();
  // The holder's second counts, too.
  EXPECT_EQ(StartsBefore("batch starts"), 9);
}

TEST_F(AgeingTest, ASuspendedJobHasItsTurnBeforeWaitingOnes) {
  SchedulerOptions options = Capacity(100);
  options.batch_ageing_seconds = 10;
  Make(options);
  InteractiveLoad load(scheduler_.get(), &journal_,
                       [this] { return !journal_.Lines("second ends OK").empty(); });
  absl::Notification go_on;
  MustSubmit(Spec("first"), Held(3, &go_on));
  journal_.WaitFor("first unit 1");
  MustSubmit(Spec("second"), Units(3));
  load.SubmitNext();
  go_on.Notify();
  journal_.WaitFor("second ends OK");
  WaitIdle();
  EXPECT_THAT(Turns(journal_, "second ends OK"),
              ElementsAre("first starts", "first suspended", "interactive", "first resumed",
                          "interactive", "second starts"));
  EXPECT_EQ(StartsBefore("first resumed"), 10);
}

}  // namespace
}  // namespace ltx::server
