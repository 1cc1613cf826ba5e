#include "engine/video_vae/frame_window.h"

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using ::testing::ElementsAre;

class FrameWindowTest : public VideoVaeTest {
 protected:
  /// Frames of one element, which is their number.
  absl::Status Append(FrameWindow* window, int64_t count, int64_t keep_from) {
    const int64_t first = window->end();
    absl::StatusOr<Tensor> memory = window->Append(device(), count, keep_from);
    if (!memory.ok()) return memory.status();
    const Tensor frames = Make(memory->shape(), [first](int64_t i) { return first + i; });
    return device().Copy(frames, &*memory);
  }
};

TEST_F(FrameWindowTest, MovesOnAndKeepsWhatIsNeeded) {
  FrameWindow window =
      FrameWindow::Create(device(), {1, 1, 1}, DType::kF32, /*capacity=*/7).value();
  ASSERT_TRUE(Append(&window, 5, 0).ok());
  // Five stay, which is more than the two that go: they move in pieces.
  ASSERT_TRUE(Append(&window, 2, 0).ok());
  EXPECT_EQ(window.begin(), 0);
  ASSERT_TRUE(Append(&window, 2, 2).ok());
  EXPECT_EQ(window.begin(), 2);
  EXPECT_EQ(window.end(), 9);
  EXPECT_THAT(Values(window.Frames(2, 9).value()), ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(Values(window.Frames(4, 6).value()), ElementsAre(4, 5));
  EXPECT_EQ(window.Frames(4, 6)->shape(), Shape({1, 2, 1, 1, 1}));
}

TEST_F(FrameWindowTest, RefusesFramesThatAreNotThereAndOnesItHasNoRoomFor) {
  FrameWindow window =
      FrameWindow::Create(device(), {1, 1, 1}, DType::kF32, /*capacity=*/4, /*begin=*/10).value();
  ASSERT_TRUE(Append(&window, 3, 10).ok());
  EXPECT_EQ(window.Frames(9, 11).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(window.Frames(12, 14).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(window.Append(device(), 2, 10).status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Append(&window, 2, 11).ok());
  EXPECT_THAT(Values(window.Frames(11, 15).value()), ElementsAre(11, 12, 13, 14));
}

TEST_F(FrameWindowTest, ShowsTheFramesOfOneClip) {
  const Tensor x = Iota({1, 3, 1, 2, 1});
  EXPECT_THAT(Values(FramesOf(x, 1, 3).value()), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(FramesOf(Iota({2, 3, 1, 2, 1}), 0, 1).status().code(), absl::StatusCode::kInternal);
  FrameWindow all(x);
  EXPECT_EQ(all.end(), 3);
}

}  // namespace
}  // namespace ltx::video_vae
