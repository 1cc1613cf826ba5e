#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"

ABSL_FLAG(int, clips, 1000, "Clips to make after the warm-up");

namespace ltx::testing {
namespace {

constexpr int kWarmUpClips = 5;
/// Difference allowed between the highest resident memory of the first third of the clips and of
/// the last: what the server's heap keeps of freed blocks goes up and down by this much.
constexpr int64_t kResidentGrowth = int64_t{12} << 20;

std::string LedgerText(const v1::HealthResponse& health) {
  std::string text;
  for (const v1::MemoryAmounts& memory : health.memory()) {
    text += memory.owner() + " " + std::to_string(memory.live_bytes()) + "\n";
  }
  return text;
}

/// Least-squares slope of resident memory over the clips, in bytes a clip.
double Slope(const std::vector<int64_t>& resident) {
  const double n = static_cast<double>(resident.size());
  const double mean_clip = (n - 1) / 2;
  const double mean_bytes = std::accumulate(resident.begin(), resident.end(), 0.0) / n;
  double covariance = 0;
  double variance = 0;
  for (size_t i = 0; i < resident.size(); ++i) {
    const double clip = static_cast<double>(i) - mean_clip;
    covariance += clip * (static_cast<double>(resident[i]) - mean_bytes);
    variance += clip * clip;
  }
  return covariance / variance;
}

/// Clips of two seeds in turns, every tenth cancelled: the same bytes and the same memory for ever.
TEST(ServerSoakTest, ManyClips) {
  // Jobs that are forgotten during the warm-up, so that what is remembered stays the same.
  const std::string state_dir = MakeFolder();
  const auto server = ServerProcess::Start(
      {"--state-dir", state_dir, "--job-history", std::to_string(kWarmUpClips - 1)});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  std::string idle;
  const std::string folder = MakeFolder();
  std::string expected[2];
  std::vector<int64_t> resident;
  uint64_t cancelled = 0;
  const int clips = kWarmUpClips + absl::GetFlag(FLAGS_clips);
  for (int i = 0; i < clips; ++i) {
    const std::string path = folder + "/clip.mp4";
    v1::GenerateVideoRequest request = SmallRequest(i % 2);
    BackgroundJob job(address, request, path);
    if (i % 10 == 9) {
      ASSERT_TRUE(job.WaitForEvent([](const auto& event) { return event.has_progress(); }));
      job.Cancel();
      if (!job.Join().ok()) ++cancelled;
    } else {
      const auto report = job.Join();
      ASSERT_TRUE(report.ok()) << report.status();
      const std::string bytes = ReadWholeFile(path);
      if (i < 2) expected[i] = bytes;
      ASSERT_TRUE(bytes == expected[i % 2]) << "clip " << i;
    }
    const v1::HealthResponse health = WaitUntilIdle(address);
    // From the first clip on: it leaves its encoded prompt in the cache.
    if (i == 0) idle = LedgerText(health);
    ASSERT_EQ(LedgerText(health), idle) << "clip " << i;
    ASSERT_EQ(health.queue().failed_jobs(), 0u);
    if (i >= kWarmUpClips) resident.push_back((*server)->process().ResidentBytes());
  }
  EXPECT_EQ(ReadHealth(address).queue().cancelled_jobs(), cancelled);
  EXPECT_EQ(ListFolder(state_dir + "/jobs").size(), static_cast<size_t>(kWarmUpClips - 1));
  const size_t third = resident.size() / 3;
  ASSERT_GT(third, 0u);
  const int64_t early = *std::max_element(resident.begin(), resident.begin() + third);
  const int64_t late = *std::max_element(resident.end() - third, resident.end());
  std::printf("resident: at most %.1f MB in the first third, %.1f MB in the last\n",
              static_cast<double>(early) / 1e6, static_cast<double>(late) / 1e6);
  for (const size_t clip : {resident.size() / 10, resident.size() / 2, resident.size()}) {
    if (clip == 0) continue;
    std::printf("resident after clip %zu: %.1f MB\n", clip,
                static_cast<double>(resident[clip - 1]) / 1e6);
  }
  std::printf("slope: %.0f bytes a clip, of the last two thirds %.0f\nledger:\n%s", Slope(resident),
              Slope({resident.begin() + third, resident.end()}), idle.c_str());
  EXPECT_LE(late - early, kResidentGrowth);
}

}  // namespace
}  // namespace ltx::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
