#include "engine/video_vae/conv_progress.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace ltx::video_vae {
namespace {

/// Two convolutions in a row, each as far as the one before it is.
TEST(ConvProgressTest, PartsCoverTheClipAndReadWhatIsThere) {
  for (const bool causal : {false, true}) {
    for (int64_t frames = 1; frames <= 21; ++frames) {
      for (int64_t step = 2; step <= 8; step += 2) {
        ConvProgress first(frames, causal);
        ConvProgress second(frames, causal);
        int64_t parts = 0;
        for (int64_t ready = step; !second.finished(); ready += step) {
          ASSERT_LT(++parts, 40) << frames << " by " << step;
          int64_t there = std::min(ready, frames);
          int64_t reach = ready;
          for (ConvProgress* conv : {&first, &second}) {
            const int64_t done = conv->done();
            const int64_t needed = conv->needed_from();
            const ConvPart part = conv->Next(reach);
            reach = conv->Reach(reach);
            EXPECT_EQ(part.begin, done);
            EXPECT_EQ(conv->done(), std::min(frames, std::max(reach, done)));
            if (part.frames() > 0) {
              EXPECT_EQ(part.begin % 2, 0);
              if (frames > 1) EXPECT_GT(part.frames(), 1) << frames << " by " << step;
              EXPECT_LE(part.frames(), step + 1);
              EXPECT_LE(part.read_end, there);
              EXPECT_GE(part.read_begin, needed);
              EXPECT_EQ(part.ends.first, part.begin == 0);
              EXPECT_EQ(part.ends.last, part.end == frames);
              // What is read and what is padded make the part.
              const int64_t before = causal ? 2 : 1;
              const int64_t after = causal ? 0 : 1;
              EXPECT_EQ(part.read_begin, std::max<int64_t>(part.begin - before, 0));
              EXPECT_EQ(part.read_end, std::min(part.end + after, frames));
              if (!part.ends.first) EXPECT_EQ(part.read_begin, part.begin - before);
              if (!part.ends.last) EXPECT_EQ(part.read_end, part.end + after);
            }
            there = conv->done();
          }
        }
        EXPECT_TRUE(first.finished());
      }
    }
  }
}

TEST(ConvProgressTest, ACausalConvolutionLagsBehindNothing) {
  EXPECT_EQ(ConvProgress(20, /*causal=*/true).Reach(8), 8);
  EXPECT_EQ(ConvProgress(20, /*causal=*/false).Reach(8), 6);
  // Beyond the end as if there were more.
  EXPECT_EQ(ConvProgress(20, /*causal=*/false).Reach(30), 28);
  // The last frame is no part of its own.
  EXPECT_EQ(ConvProgress(21, /*causal=*/true).Reach(20), 18);
}

TEST(ConvProgressTest, PartsHaveTheLeastEvenNumberOfFrames) {
  EXPECT_EQ(FramesPerPart(100, 25), 4);
  EXPECT_EQ(FramesPerPart(101, 25), 6);
  EXPECT_EQ(FramesPerPart(10, 1000), 2);
}

}  // namespace
}  // namespace ltx::video_vae
