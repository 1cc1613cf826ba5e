#include "kernels/cuda/copy_team.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::cuda {
namespace {

TEST(CopyTeamTest, EveryPieceIsDoneOnceBeforeRunReturns) {
  CopyTeam team(4);
  EXPECT_EQ(team.members(), 4);
  for (int round = 0; round < 2000; ++round) {
    const int pieces = round % 37;
    // Plain counters: two members at one piece would be a race, one after the return too.
    std::vector<int> done(pieces, 0);
    team.Run(pieces, [&](int member, int64_t piece) {
      EXPECT_GE(member, 0);
      EXPECT_LT(member, 4);
      ++done[piece];
    });
    EXPECT_EQ(done, std::vector<int>(pieces, 1)) << round;
  }
}

TEST(CopyTeamTest, HelpersThatFellAsleepComeBack) {
  CopyTeam team(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<int> by(3, 0);
    std::atomic<int> sum{0};
    team.Run(30, [&](int member, int64_t /*piece*/) {
      ++by[member];
      ++sum;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT_EQ(sum, 30);
    // A caller alone would take all of them.
    EXPECT_LT(by[0], 30) << round;
  }
}

TEST(CopyTeamTest, OneMemberIsTheCaller) {
  CopyTeam team(1);
  const std::thread::id caller = std::this_thread::get_id();
  int sum = 0;
  team.Run(5, [&](int member, int64_t piece) {
    EXPECT_EQ(member, 0);
    EXPECT_EQ(std::this_thread::get_id(), caller);
    sum += static_cast<int>(piece);
  });
  EXPECT_EQ(sum, 10);
}

TEST(CopyTeamTest, PostedJobsAreBegunInOrderAndDoneAtFinish) {
  for (const int members : {1, 2, 5}) {
    CopyTeam team(members);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::vector<int>> done;
      done.reserve(20);
      for (int job = 0; job < 20; ++job) done.emplace_back((round + job) % 7, 0);
      std::atomic<int> begun{0};
      for (int job = 0; job < 20; ++job) {
        team.Post(static_cast<int64_t>(done[job].size()), [&, job](int /*member*/, int64_t piece) {
          // At most as many pieces of earlier jobs are still at work as there are other members.
          int before = 0;
          for (int earlier = 0; earlier < job; ++earlier) {
            before += static_cast<int>(done[earlier].size());
          }
          EXPECT_GE(begun + members - 1, before);
          ++begun;
          ++done[job][piece];
        });
      }
      team.Finish();
      for (int job = 0; job < 20; ++job) {
        EXPECT_EQ(done[job], std::vector<int>(done[job].size(), 1)) << round << " " << job;
      }
    }
  }
}

TEST(CopyTeamTest, HelpersStartOnWhatIsPostedWithoutFinish) {
  CopyTeam team(2);
  std::atomic<int> sum{0};
  team.Post(8, [&](int member, int64_t /*piece*/) {
    EXPECT_EQ(member, 1);
    ++sum;
  });
  while (sum < 8) std::this_thread::yield();
  team.Finish();
  EXPECT_EQ(sum, 8);
}

TEST(CopyTeamTest, WhatTheWorkHoldsIsReleasedByFinish) {
  CopyTeam team(4);
  for (int round = 0; round < 500; ++round) {
    const auto held = std::make_shared<int>(round);
    for (int job = 0; job < 3; ++job) team.Post(4, [held](int, int64_t) {});
    team.Finish();
    EXPECT_EQ(held.use_count(), 1) << round;
  }
}

}  // namespace
}  // namespace ltx::cuda
