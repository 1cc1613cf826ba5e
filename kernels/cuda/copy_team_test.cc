#include "kernels/cuda/copy_team.h"

#include <atomic>
#include <chrono>
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

}  // namespace
}  // namespace ltx::cuda
