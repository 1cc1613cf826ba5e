#include "engine/video_vae/resnet_block.h"

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using ::testing::HasSubstr;

class ResnetBlockTest : public VideoVaeTest {
 protected:
  /// Every tensor a block of this kind may want; its convolutions are zero.
  static TestWeights ZeroConvolutions(int64_t in, int64_t out) {
    TestWeights weights;
    weights.AddConstant("conv1.conv.weight", Shape({out, in, 3, 3, 3}), 0.0f);
    weights.AddConstant("conv1.conv.bias", Shape({out}), 0.0f);
    weights.AddConstant("conv2.conv.weight", Shape({out, out, 3, 3, 3}), 0.0f);
    weights.AddConstant("conv2.conv.bias", Shape({out}), 0.0f);
    return weights;
  }
  BlockContext Context(const NoiseSource* noise = nullptr) {
    BlockContext context;
    context.device = &device();
    context.noise = noise;
    return context;
  }
};

TEST_F(ResnetBlockTest, IsTheIdentityWithoutConvolutions) {
  TestWeights weights = ZeroConvolutions(3, 3);
  ResnetBlockOptions options;
  options.in_channels = options.out_channels = 3;
  const auto block = ResnetBlock::Load(weights.Loader(device()), options).value();
  const Tensor x = Iota(Shape({2, 1, 3, 1, 3}));
  EXPECT_EQ(Values(block->Forward(x, Context()).value()), Values(x));
}

TEST_F(ResnetBlockTest, InPartsAndInPlaceItHasTheBitsOfTheWhole) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    TestWeights weights;
    weights.AddModule("conv1.conv", Shape({8, 8, 3, 3, 3}));
    weights.AddModule("conv2.conv", Shape({8, 8, 3, 3, 3}));
    ResnetBlockOptions options;
    options.in_channels = options.out_channels = 8;
    const auto block = ResnetBlock::Load(weights.Loader(device(), dtype), options).value();
    ASSERT_TRUE(block->works_in_parts());
    for (const bool causal : {false, true}) {
      for (const int64_t frames : {1, 2, 5, 9, 12, 13}) {
        const auto input = [&] {
          const Tensor x = Make(Shape({1, frames, 3, 5, 8}),
                                [](int64_t i) { return static_cast<float>(i % 23) / 8 - 1; });
          return device().Cast(x, dtype).value();
        };
        BlockContext context = Context();
        context.causal = causal;
        const Tensor kept = input();
        const std::vector<float> whole = Values(block->Forward(kept, context).value());
        EXPECT_EQ(Values(kept), Values(input()))
            << "memory that somebody else reads stays as it is";
        Tensor own = input();
        const void* const memory = own.raw();
        const Tensor in_place = block->Forward(std::move(own), context).value();
        EXPECT_EQ(in_place.raw(), memory);
        EXPECT_EQ(Values(in_place), whole);
        for (const int64_t step : {2, 4, 6}) {
          FrameWindow window(input());
          ResnetParts parts(block.get(), &window, frames, causal);
          for (int64_t ready = step; !parts.finished(); ready += step) {
            ASSERT_LT(ready, frames + 4 * step + 8);
            ASSERT_TRUE(parts.Advance(ready, context).ok());
          }
          EXPECT_EQ(Values(window.Frames(0, frames).value()), whole)
              << DTypeName(dtype) << causal << frames << " by " << step;
        }
      }
    }
  }
}

TEST_F(ResnetBlockTest, DrawsNoiseTwicePerBlockOverHeightAndWidth) {
  TestWeights weights = ZeroConvolutions(2, 2);
  weights.AddConstant("per_channel_scale1", Shape({2, 1, 1}), 0.0f);
  weights.Add("per_channel_scale2", Shape({2, 1, 1}), [](int64_t i) { return i == 0 ? 1.f : 2.f; });
  ResnetBlockOptions options;
  options.in_channels = options.out_channels = 2;
  options.inject_noise = true;
  const auto block = ResnetBlock::Load(weights.Loader(device()), options).value();
  const Tensor x = Make(Shape({1, 2, 2, 3, 2}), [](int64_t) { return 0.0f; });
  int draws = 0;
  const NoiseSource noise = [&](const Shape& shape, DType) -> absl::StatusOr<Tensor> {
    EXPECT_EQ(shape, Shape({2, 3}));
    ++draws;
    return Iota(shape);
  };
  const std::vector<float> y = Values(block->Forward(x, Context(&noise)).value());
  EXPECT_EQ(draws, 2);
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const int64_t position = i / 2 % 6;
    EXPECT_EQ(y[i], static_cast<float>(position * (i % 2 + 1))) << i;
  }
  const auto without = block->Forward(x, Context());
  EXPECT_EQ(without.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("noise source"));
}

TEST_F(ResnetBlockTest, RefusesNoiseOrConditioningWithAChangeOfWidth) {
  ResnetBlockOptions options;
  options.in_channels = 4;
  options.out_channels = 2;
  options.inject_noise = true;
  TestWeights weights = ZeroConvolutions(4, 2);
  const auto block = ResnetBlock::Load(weights.Loader(device()), options);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(block.status().message()), HasSubstr("from 4 to 2"));
}

TEST_F(ResnetBlockTest, GroupNormNeedsAMultipleOfItsGroups) {
  ResnetBlockOptions options;
  options.in_channels = options.out_channels = 48;
  options.norm_layer = checkpoint::VideoNorm::kGroupNorm;
  TestWeights weights = ZeroConvolutions(48, 48);
  const auto block = ResnetBlock::Load(weights.Loader(device()), options);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(block.status().message()), HasSubstr("48 channels"));
}

TEST_F(ResnetBlockTest, NamesAMissingTimeEmbedder) {
  ResnetBlockOptions options;
  options.in_channels = options.out_channels = 2;
  options.timestep_conditioning = true;
  TestWeights weights;
  const auto stack = ResnetStack::Load(weights.Loader(device()), options, 1);
  EXPECT_EQ(stack.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(stack.status().message()),
              HasSubstr("time_embedder.timestep_embedder.linear_1"));
}

}  // namespace
}  // namespace ltx::video_vae
