#include "engine/video_vae/upsample_block.h"

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using ::testing::HasSubstr;

class UpsampleBlockTest : public VideoVaeTest {
 protected:
  absl::StatusOr<Tensor> Run(const UpsampleBlockOptions& options, const Tensor& x, bool zero_conv) {
    int64_t volume = 1;
    for (const int factor : options.stride) volume *= factor;
    const int64_t out = volume * options.in_channels / options.reduction;
    const Shape shape({out, options.in_channels, 3, 3, 3});
    TestWeights weights;
    weights.AddModule("conv.conv", shape);
    if (zero_conv) weights.AddConstant("conv.conv.weight", shape, 0.0f);
    auto block = UpsampleBlock::Load(weights.Loader(device()), options);
    if (!block.ok()) return block.status();
    BlockContext context;
    context.device = &device();
    context.causal = false;
    return (*block)->Forward(x, context);
  }
};

TEST_F(UpsampleBlockTest, TimeDoublesAndLosesItsFirstFrame) {
  UpsampleBlockOptions options;
  options.in_channels = 4;
  options.reduction = 2;
  options.stride = {2, 1, 1};
  EXPECT_EQ(Run(options, Iota(Shape({1, 3, 3, 5, 4})), false)->shape(), Shape({1, 5, 3, 5, 2}));
  EXPECT_EQ(Run(options, Iota(Shape({2, 1, 1, 1, 4})), false)->shape(), Shape({2, 1, 1, 1, 2}));
  options.stride = {1, 2, 2};
  EXPECT_EQ(Run(options, Iota(Shape({1, 3, 3, 5, 4})), false)->shape(), Shape({1, 3, 6, 10, 2}));
  options.stride = {2, 2, 2};
  EXPECT_EQ(Run(options, Iota(Shape({1, 2, 3, 5, 4})), false)->shape(), Shape({1, 3, 6, 10, 2}));
}

// With a convolution of zeros only the skip is left: depth-to-space of the input, its channels
// repeated as a whole.
TEST_F(UpsampleBlockTest, SkipRepeatsTheWholeChannelBlock) {
  UpsampleBlockOptions options;
  options.in_channels = 16;
  options.reduction = 2;
  options.stride = {2, 2, 2};
  options.residual = true;
  const Tensor x = Iota(Shape({1, 2, 2, 3, 16}));
  const Tensor y = Run(options, x, true).value();
  ASSERT_EQ(y.shape(), Shape({1, 3, 4, 6, 8}));
  const Tensor skip = device().DepthToSpace(x, {2, 2, 2}, true).value();
  ASSERT_EQ(skip.shape(), Shape({1, 3, 4, 6, 2}));
  const std::vector<Tensor> copies(4, skip);
  EXPECT_EQ(Values(y), Values(device().Concat(copies, 4).value()));
}

TEST_F(UpsampleBlockTest, RefusesChannelsThatDoNotDivide) {
  UpsampleBlockOptions options;
  options.in_channels = 4;
  options.reduction = 3;
  options.stride = {1, 2, 2};
  const auto odd = Run(options, Tensor(), false);
  EXPECT_EQ(odd.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(odd.status().message()), HasSubstr("multiplier 3"));
  options.reduction = 2;
  options.stride = {2, 2, 2};
  options.residual = true;
  const auto few = Run(options, Tensor(), false);
  EXPECT_EQ(few.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(few.status().message()), HasSubstr("divisible by 8"));
}

}  // namespace
}  // namespace ltx::video_vae
