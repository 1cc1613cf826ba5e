#include "server/scheduler/fair_queue.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr JobClass kInteractive = JobClass::kInteractive;
constexpr JobClass kBatch = JobClass::kBatch;

WaitingJob Job(const std::string& id, const std::string& tenant, JobClass job_class = kBatch) {
  return {id, tenant, job_class, 0};
}

/// Takes the head and lets it use `seconds`.
std::string RunNext(FairQueue* queue, double seconds = 1) {
  const WaitingJob job = queue->Pop(queue->Head()->job_class);
  queue->Charge(job.tenant, seconds);
  queue->Release(job.tenant);
  return job.id;
}

std::vector<std::string> RunAll(FairQueue* queue) {
  std::vector<std::string> order;
  while (!queue->empty()) order.push_back(RunNext(queue));
  return order;
}

std::vector<std::string> Ids(const std::vector<const WaitingJob*>& jobs) {
  std::vector<std::string> ids;
  ids.reserve(jobs.size());
  for (const WaitingJob* job : jobs) ids.push_back(job->id);
  return ids;
}

TEST(FairQueueTest, FirstComeFirstServedInsideATenant) {
  FairQueue queue;
  for (const char* id : {"a1", "a2", "a3"}) queue.Push(Job(id, "a"));
  EXPECT_EQ(queue.size(), 3);
  EXPECT_EQ(queue.Head()->id, "a1");
  EXPECT_THAT(RunAll(&queue), ElementsAre("a1", "a2", "a3"));
  EXPECT_EQ(queue.Head(), nullptr);
}

TEST(FairQueueTest, TheClassComesFirst) {
  FairQueue queue;
  queue.Push(Job("batch", "a", kBatch));
  queue.Push(Job("interactive", "b", kInteractive));
  EXPECT_EQ(queue.size(kBatch), 1);
  EXPECT_EQ(queue.size(kInteractive), 1);
  EXPECT_THAT(RunAll(&queue), ElementsAre("interactive", "batch"));
}

TEST(FairQueueTest, TheHeadOfALowerClassCanBeTakenFirst) {
  FairQueue queue;
  queue.Push(Job("interactive", "b", kInteractive));
  EXPECT_EQ(queue.Head(kBatch), nullptr);
  for (const char* id : {"batch1", "batch2"}) queue.Push(Job(id, "a", kBatch));
  EXPECT_EQ(queue.Head(kBatch)->id, "batch1");
  EXPECT_EQ(queue.Pop(kBatch).id, "batch1");
  EXPECT_THAT(RunAll(&queue), ElementsAre("interactive", "batch2"));
}

TEST(FairQueueTest, TenantsTakeTurnsHoweverManyJobsOneSends) {
  FairQueue queue;
  for (const char* id : {"a1", "a2", "a3"}) queue.Push(Job(id, "a"));
  queue.Push(Job("b1", "b"));
  queue.Push(Job("c1", "c"));
  EXPECT_THAT(RunAll(&queue), ElementsAre("a1", "b1", "c1", "a2", "a3"));
}

TEST(FairQueueTest, SharesFollowTheWeights) {
  FairQueue queue({{"heavy", 3}, {"light", 1}});
  for (int i = 0; i < 400; ++i) {
    queue.Push(Job(absl::StrCat("h", i), "heavy"));
    queue.Push(Job(absl::StrCat("l", i), "light"));
  }
  std::map<char, int> served;
  for (int i = 0; i < 400; ++i) ++served[RunNext(&queue)[0]];
  EXPECT_NEAR(served['h'], 300, 2);
  EXPECT_NEAR(served['l'], 100, 2);
}

TEST(FairQueueTest, SharesAreOfTimeNotOfJobs) {
  FairQueue queue;
  for (int i = 0; i < 400; ++i) {
    queue.Push(Job(absl::StrCat("s", i), "short"));
    queue.Push(Job(absl::StrCat("l", i), "long"));
  }
  std::map<char, int> served;
  for (int i = 0; i < 300; ++i) {
    const bool is_long = queue.Head()->tenant == "long";
    ++served[RunNext(&queue, is_long ? 4 : 1)[0]];
  }
  EXPECT_NEAR(served['s'], 4 * served['l'], 5);
}

TEST(FairQueueTest, NobodySavesUpByPausing) {
  FairQueue queue;
  for (int i = 0; i < 20; ++i) queue.Push(Job(absl::StrCat("a", i), "a"));
  for (int i = 0; i < 10; ++i) RunNext(&queue);
  // `b` has used nothing so far, and still gets no more than its turn.
  for (int i = 0; i < 3; ++i) queue.Push(Job(absl::StrCat("b", i), "b"));
  EXPECT_THAT((std::vector<std::string>{RunNext(&queue), RunNext(&queue), RunNext(&queue),
                                        RunNext(&queue)}),
              ElementsAre("a10", "b0", "a11", "b1"));
}

TEST(FairQueueTest, NobodyLosesADebtByPausing) {
  FairQueue queue;
  queue.Push(Job("a0", "a"));
  for (int i = 0; i < 20; ++i) queue.Push(Job(absl::StrCat("b", i), "b"));
  EXPECT_EQ(RunNext(&queue, 5), "a0");
  EXPECT_EQ(RunNext(&queue), "b0");
  queue.Push(Job("a1", "a"));
  std::vector<std::string> before;
  for (std::string id = RunNext(&queue); id != "a1"; id = RunNext(&queue)) before.push_back(id);
  // Five seconds each by then; of two that are level the longer waiting one goes.
  EXPECT_THAT(before, ElementsAre("b1", "b2", "b3", "b4", "b5"));
}

TEST(FairQueueTest, AnEmptyDeviceForgivesAndForgets) {
  FairQueue queue;
  queue.Push(Job("a0", "a"));
  RunNext(&queue, 1000);
  EXPECT_EQ(queue.tenants(), 0);
  queue.Push(Job("a1", "a"));
  queue.Push(Job("b0", "b"));
  EXPECT_THAT(RunAll(&queue), ElementsAre("a1", "b0"));
}

TEST(FairQueueTest, ManyOneTimeTenantsAreForgotten) {
  FairQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Push(Job(absl::StrCat("x", i), absl::StrCat("t", i)));
  queue.Push(Job("last", "last"));
  for (int i = 0; i < 1000; ++i) RunNext(&queue);
  queue.Push(Job("more", "last"));
  RunNext(&queue, 10);
  EXPECT_EQ(queue.tenants(), 1);
}

TEST(FairQueueTest, RemovedJobsDoNotRun) {
  FairQueue queue;
  for (const char* id : {"a1", "a2", "a3"}) queue.Push(Job(id, "a"));
  EXPECT_TRUE(queue.Remove("a2"));
  EXPECT_FALSE(queue.Remove("a2"));
  EXPECT_TRUE(queue.Remove("a1"));
  EXPECT_EQ(queue.size(), 1);
  EXPECT_THAT(RunAll(&queue), ElementsAre("a3"));
  EXPECT_FALSE(queue.Remove("a3"));
}

TEST(FairQueueTest, OrderIsWhatHappens) {
  FairQueue queue({{"b", 2}});
  for (int i = 0; i < 6; ++i) {
    queue.Push(Job(absl::StrCat("a", i), "a", i % 3 == 0 ? kInteractive : kBatch));
    queue.Push(Job(absl::StrCat("b", i), "b", i % 2 == 0 ? kInteractive : kBatch));
    queue.Push(Job(absl::StrCat("c", i), "c"));
  }
  const std::vector<std::string> told = Ids(queue.Order(1));
  EXPECT_EQ(told.size(), 18u);
  EXPECT_EQ(told, RunAll(&queue));
  EXPECT_THAT(queue.Order(1), IsEmpty());
}

}  // namespace
}  // namespace ltx::server
