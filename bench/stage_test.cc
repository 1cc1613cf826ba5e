#include "bench/stage.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "tools/random_model/model_size.h"
#include "tools/random_model/random_file.h"

namespace ltx::bench {
namespace {

TEST(ClipSizeTest, CountsTokens) {
  ClipSize clip;
  EXPECT_EQ(clip.video_tokens(), 6144);
  EXPECT_EQ(clip.audio_tokens(), 126);
  clip.height = 448;
  clip.frames = 25;
  EXPECT_EQ(clip.video_tokens(), 1344);
  clip.forced_audio_tokens = 5;
  EXPECT_EQ(clip.audio_tokens(), 5);
}

const checkpoint::ModelSet& TinyFiles() {
  static const auto* const files =
      new checkpoint::ModelSet(random_model::RandomModelSet(random_model::TinySize()).value());
  return *files;
}

StageSize SmallSize() {
  StageSize size;
  size.clip.width = 128;
  size.clip.height = 64;
  size.clip.frames = 17;
  size.text_tokens = 20;
  return size;
}

class StageTest : public ::testing::TestWithParam<std::string> {
 protected:
  StageTest() : device_(cpu::CpuDevice::Create({}).value()) { options_.dtype = DType::kF32; }
  std::vector<float> Floats(const Tensor& tensor) { return ValuesOf(*device_, tensor).value(); }

  const std::unique_ptr<cpu::CpuDevice> device_;
  StageOptions options_;
};

/// A run is finite and repeatable, and takes the memory that the projection tells of it.
TEST_P(StageTest, RunsAsProjected) {
  const auto stage = LoadStage(GetParam(), device_.get(), &TinyFiles(), options_);
  ASSERT_TRUE(stage.ok()) << stage.status();
  const auto prepared = (*stage)->Prepare(SmallSize());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_FALSE(prepared->size.empty());
  const auto first = prepared->run();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_FALSE(first->empty());
  std::vector<std::vector<float>> expected;
  for (const Tensor& result : *first) {
    expected.push_back(Floats(result));
    double squares = 0.0;
    for (const float v : expected.back()) squares += static_cast<double>(v) * v;
    EXPECT_TRUE(std::isfinite(squares));
    EXPECT_GT(squares, 0.0);
  }
  const int64_t resident = device_->ledger().Read().total.live_bytes;
  std::vector<std::vector<float>> got;
  {
    const auto again = prepared->run();
    ASSERT_TRUE(again.ok()) << again.status();
    for (const Tensor& result : *again) got.push_back(Floats(result));
  }
  EXPECT_EQ(got, expected);

  const auto projection = (*stage)->Project(SmallSize());
  ASSERT_TRUE(projection.ok()) << projection.status();
  EXPECT_GT(projection->work.products, 0.0);
  EXPECT_GT(projection->work.operations, 0);
  EXPECT_GT(resident, 0);
}

TEST_P(StageTest, MemoryIsWithinFivePercentOfTheProjection) {
  const auto stage = LoadStage(GetParam(), device_.get(), &TinyFiles(), options_);
  ASSERT_TRUE(stage.ok()) << stage.status();
  const auto prepared = (*stage)->Prepare(SmallSize());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  // What is kept from the first run on is no part of the later ones' memory.
  ASSERT_TRUE(prepared->run().ok());
  device_->ledger().ResetPeaks();
  ASSERT_TRUE(prepared->run().ok());
  const auto peak = static_cast<double>(device_->ledger().Read().total.peak_bytes);
  const auto projection = (*stage)->Project(SmallSize());
  ASSERT_TRUE(projection.ok()) << projection.status();
  // At this size what a library takes beside the operations it was asked for shows.
  constexpr double kLibraryBytes = 1 << 17;
  EXPECT_NEAR(static_cast<double>(projection->peak_bytes), peak, 0.05 * peak + kLibraryBytes);
  EXPECT_LT(projection->resident_bytes, projection->peak_bytes);
}

INSTANTIATE_TEST_SUITE_P(All, StageTest, ::testing::ValuesIn(StageNames()),
                         [](const auto& info) { return info.param; });

TEST(DitWorkTest, CountsWhatTheFormulaSays) {
  random_model::ModelSize model = random_model::TinySize();
  model.video_head_dim = 128;
  model.audio_head_dim = 64;
  model.layers = 8;
  const auto files = random_model::RandomModelSet(model);
  ASSERT_TRUE(files.ok()) << files.status();
  const auto device = cpu::CpuDevice::Create({}).value();
  // Shapes alone: no weights are made.
  ShapeDevice shapes(device.get());
  const auto stage = LoadStage("dit", &shapes, &*files, {});
  ASSERT_TRUE(stage.ok()) << stage.status();
  const StageSize size;
  const auto projection = (*stage)->Project(size);
  ASSERT_TRUE(projection.ok()) << projection.status();
  const double nv = 6144.0;
  const double na = 126.0;
  const double nt = 1024.0;
  const double v = 512.0;
  const double a = 256.0;
  // Self-attention (q, k, v, out), text (q, out), feed-forward (4 + 4), text keys and values; then
  // both cross-modal attentions, whose inner width is the audio stream's.
  const auto stream = [&](double n, double d) { return n * d * d * (4 + 2 + 8) + nt * d * d * 2; };
  const double products = 8 * (stream(nv, v) + stream(na, a) + 4 * nv * v * a + 4 * na * a * a);
  const double attention =
      8 * 2 * (nv * nv * v + na * na * a + nv * nt * v + na * nt * a + 2 * nv * na * a);
  // Beside the blocks there are the projections in and out.
  EXPECT_NEAR(projection->work.products / products, 1.01, 0.01);
  EXPECT_NEAR(projection->work.attention / attention, 1.0, 0.001);
}

TEST(StageNamesTest, AnUnknownNameIsRefusedWithTheLegalOnes) {
  const auto device = cpu::CpuDevice::Create({}).value();
  const auto stage = LoadStage("diT", device.get(), &TinyFiles(), {});
  EXPECT_EQ(stage.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(stage.status().message().find("video_decode"), absl::string_view::npos);
}

}  // namespace
}  // namespace ltx::bench
