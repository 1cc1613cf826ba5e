#include "engine/video_vae/causal_conv3d.h"

#include <algorithm>

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class CausalConv3dTest : public VideoVaeTest {
 protected:
  /// A 3x3x3 kernel of one channel that only sees the centre of frame t + tap - shift.
  CausalConv3d OneTap(int tap, const CausalConv3dOptions& options = {}) {
    TestWeights weights;
    weights.Add("c.weight", Shape({1, 1, 3, 3, 3}),
                [tap](int64_t i) { return i == tap * 9 + 4 ? 1.0f : 0.0f; });
    weights.AddConstant("c.bias", Shape({1}), 0.0f);
    auto loader = weights.Loader(device());
    return CausalConv3d::Load(loader, "c", 1, 1, options).value();
  }
  std::vector<float> Run(const CausalConv3d& conv, int64_t frames, bool causal) {
    return Values(conv.Forward(device(), Iota(Shape({1, frames, 1, 1, 1})), causal).value());
  }
};

TEST_F(CausalConv3dTest, CausalSeesTheFirstFrameTwiceInFront) {
  EXPECT_THAT(Run(OneTap(0), 4, true), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(Run(OneTap(1), 4, true), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(Run(OneTap(2), 4, true), ElementsAre(0, 1, 2, 3));
}

TEST_F(CausalConv3dTest, NonCausalCopiesOneFrameOnEitherSide) {
  EXPECT_THAT(Run(OneTap(0), 4, false), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(Run(OneTap(2), 4, false), ElementsAre(1, 2, 3, 3));
}

TEST_F(CausalConv3dTest, OneFrameIsEnough) {
  const Tensor x = Make(Shape({1, 1, 1, 1, 1}), [](int64_t) { return 5.0f; });
  for (const bool causal : {true, false}) {
    for (const int tap : {0, 1, 2}) {
      EXPECT_THAT(Values(OneTap(tap).Forward(device(), x, causal).value()), ElementsAre(5));
    }
  }
}

TEST_F(CausalConv3dTest, SpatialZerosDoNotReachTime) {
  // All taps one: a lone pixel per frame is summed over three frames, whatever lies beside it.
  TestWeights weights;
  weights.AddConstant("c.weight", Shape({1, 1, 3, 3, 3}), 1.0f);
  weights.AddConstant("c.bias", Shape({1}), 0.0f);
  auto loader = weights.Loader(device());
  const CausalConv3d conv = CausalConv3d::Load(loader, "c", 1, 1, {}).value();
  EXPECT_THAT(Run(conv, 3, false), ElementsAre(0 + 0 + 1, 0 + 1 + 2, 1 + 2 + 2));
}

TEST_F(CausalConv3dTest, StrideRoundsUp) {
  CausalConv3dOptions options;
  options.stride = {2, 2, 2};
  const Tensor y = OneTap(2, options).Forward(device(), Iota(Shape({1, 5, 3, 4, 1})), true).value();
  EXPECT_EQ(y.shape(), Shape({1, 3, 2, 2, 1}));
}

TEST_F(CausalConv3dTest, AddsTheResidual) {
  const Tensor x = Iota(Shape({1, 3, 1, 1, 1}));
  const Tensor y = OneTap(2).Forward(device(), x, true, {}, x).value();
  EXPECT_THAT(Values(y), ElementsAre(0, 2, 4));
}

TEST_F(CausalConv3dTest, NormalisesBefore) {
  const Tensor x = Make(Shape({1, 2, 1, 1, 1}), [](int64_t i) { return i == 0 ? 3.0f : -5.0f; });
  NormConvOptions around;
  around.norm = NormConvOptions::Norm{0.0f, Activation::kNone};
  EXPECT_THAT(Values(OneTap(2).Forward(device(), x, true, around).value()), ElementsAre(1, -1));
  around.norm->activation = Activation::kSilu;
  EXPECT_THAT(Values(OneTap(2).Forward(device(), x, true, around).value()),
              ElementsAre(FloatNear(0.731059f, 1e-5f), FloatNear(-0.268941f, 1e-5f)));
}

TEST_F(CausalConv3dTest, MovesChannelsToPositionsAfterwards) {
  // Two channels that copy the input and its double become two frames, the first of which goes.
  TestWeights weights;
  weights.Add("c.weight", Shape({2, 1, 3, 3, 3}),
              [](int64_t i) { return i % 27 == 13 ? 1.0f + static_cast<float>(i / 27) : 0.0f; });
  weights.AddConstant("c.bias", Shape({2}), 0.0f);
  auto loader = weights.Loader(device());
  const CausalConv3d conv = CausalConv3d::Load(loader, "c", 1, 2, {}).value();
  const Tensor x = Make(Shape({1, 3, 1, 1, 1}), [](int64_t i) { return 1.0f + i; });
  NormConvOptions around;
  around.depth_to_space = {2, 1, 1};
  around.drop_first_frame = true;
  EXPECT_THAT(Values(conv.Forward(device(), x, false, around).value()), ElementsAre(2, 2, 4, 3, 6));
}

TEST_F(CausalConv3dTest, ReflectNeedsTwoElements) {
  CausalConv3dOptions options;
  options.spatial_padding = PadMode::kReflect;
  const CausalConv3d conv = OneTap(1, options);
  EXPECT_TRUE(conv.Forward(device(), Iota(Shape({1, 1, 2, 2, 1})), true).ok());
  const auto narrow = conv.Forward(device(), Iota(Shape({1, 1, 2, 1, 1})), true);
  EXPECT_EQ(narrow.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(narrow.status().message()), HasSubstr("a width of at least 2"));
  const auto flat = conv.Forward(device(), Iota(Shape({1, 1, 1, 2, 1})), true);
  EXPECT_THAT(std::string(flat.status().message()), HasSubstr("a height of at least 2"));
}

TEST_F(CausalConv3dTest, RefusesAnEvenKernel) {
  CausalConv3dOptions options;
  options.kernel = 2;
  TestWeights weights;
  auto loader = weights.Loader(device());
  const auto conv = CausalConv3d::Load(loader, "c", 1, 1, options);
  EXPECT_EQ(conv.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(conv.status().message()), HasSubstr("kernel_size"));
}

}  // namespace
}  // namespace ltx::video_vae
