#include "engine/video_vae/conv_decoder.h"

#include "absl/strings/str_cat.h"
#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using checkpoint::VideoBlock;
using checkpoint::VideoBlockKind;
using checkpoint::VideoDecoderConfig;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

VideoBlock Entry(VideoBlockKind kind, int64_t multiplier = 1) {
  VideoBlock block;
  block.kind = kind;
  block.multiplier = multiplier;
  return block;
}

/// 2 latent channels, widths 4 -> 2, factors 4 (space) and 2 (time).
VideoDecoderConfig SmallConfig() {
  VideoDecoderConfig config;
  config.latent_channels = 2;
  config.base_channels = 2;
  config.patch_size = 2;
  config.timestep_conditioning = false;
  config.spatial_padding = checkpoint::SpatialPadding::kZeros;
  config.blocks = {Entry(VideoBlockKind::kResX), Entry(VideoBlockKind::kCompressAll, 2)};
  return config;
}

/// Its weights below `prefix`.
TestWeights SmallWeights(const std::string& prefix = "") {
  TestWeights weights;
  weights.AddConstant(prefix + "per_channel_statistics.mean-of-means", Shape({2}), 0.5f);
  weights.AddConstant(prefix + "per_channel_statistics.std-of-means", Shape({2}), 2.0f);
  const std::string decoder = prefix + "decoder.";
  weights.AddModule(decoder + "conv_in.conv", Shape({4, 2, 3, 3, 3}));
  weights.AddModule(decoder + "up_blocks.0.conv.conv", Shape({16, 4, 3, 3, 3}));
  weights.AddModule(decoder + "up_blocks.1.res_blocks.0.conv1.conv", Shape({2, 2, 3, 3, 3}));
  weights.AddModule(decoder + "up_blocks.1.res_blocks.0.conv2.conv", Shape({2, 2, 3, 3, 3}));
  weights.AddModule(decoder + "conv_out.conv", Shape({12, 2, 3, 3, 3}));
  return weights;
}

class ConvDecoderTest : public VideoVaeTest {
 protected:
  absl::StatusOr<std::unique_ptr<ConvDecoder>> Load(TestWeights weights,
                                                    const VideoDecoderConfig& config,
                                                    std::optional<DecodeParts> parts = std::nullopt,
                                                    DType dtype = DType::kF32) {
    return ConvDecoder::Load(config, weights.Loader(device(), dtype), parts);
  }
  Tensor Latent(const Shape& shape) {
    return Make(shape, [](int64_t i) { return static_cast<float>(i % 7) / 4.0f - 0.75f; });
  }
};

TEST_F(ConvDecoderTest, FactorsComeFromTheBlockList) {
  const auto small = Load(SmallWeights(), SmallConfig()).value();
  EXPECT_EQ(small->factors().spatial, 4);
  EXPECT_EQ(small->factors().temporal, 2);

  VideoDecoderConfig config;
  config.latent_channels = 2;
  config.base_channels = 2;
  config.timestep_conditioning = false;
  config.blocks = {Entry(VideoBlockKind::kCompressSpace), Entry(VideoBlockKind::kCompressTime),
                   Entry(VideoBlockKind::kCompressAll)};
  TestWeights weights;
  weights.AddConstant("per_channel_statistics.mean-of-means", Shape({2}), 0.0f);
  weights.AddConstant("per_channel_statistics.std-of-means", Shape({2}), 1.0f);
  weights.AddModule("decoder.conv_in.conv", Shape({2, 2, 3, 3, 3}));
  weights.AddModule("decoder.up_blocks.0.conv.conv", Shape({16, 2, 3, 3, 3}));
  weights.AddModule("decoder.up_blocks.1.conv.conv", Shape({4, 2, 3, 3, 3}));
  weights.AddModule("decoder.up_blocks.2.conv.conv", Shape({8, 2, 3, 3, 3}));
  weights.AddModule("decoder.conv_out.conv", Shape({48, 2, 3, 3, 3}));
  const auto decoder = Load(std::move(weights), config).value();
  EXPECT_EQ(decoder->factors().spatial, 16);
  EXPECT_EQ(decoder->factors().temporal, 4);
  const Tensor video = decoder->Decode(Latent(Shape({1, 3, 2, 3, 2})), {}).value();
  EXPECT_EQ(video.shape(), Shape({1, 9, 32, 48, 3}));
}

TEST_F(ConvDecoderTest, TakesOneFrameAndOddSizes) {
  const auto decoder = Load(SmallWeights(), SmallConfig()).value();
  EXPECT_EQ(decoder->Decode(Latent(Shape({1, 1, 1, 1, 2})), {})->shape(), Shape({1, 1, 4, 4, 3}));
  EXPECT_EQ(decoder->Decode(Latent(Shape({2, 3, 3, 5, 2})), {})->shape(), Shape({2, 5, 12, 20, 3}));
}

TEST_F(ConvDecoderTest, PrefixIsOptionalAndTheEncoderIsLeftAlone) {
  TestWeights whole = SmallWeights("vae.");
  whole.AddConstant("vae.encoder.conv_in.conv.bias", Shape({1}), 0.0f);
  whole.AddConstant("vae.per_channel_statistics.channel", Shape({2}), 0.0f);
  whole.AddConstant("model.diffusion_model.something", Shape({2}), 0.0f);
  const auto prefixed = Load(std::move(whole), SmallConfig());
  ASSERT_TRUE(prefixed.ok()) << prefixed.status();
  TestWeights split = SmallWeights();
  split.AddConstant("encoder.conv_in.conv.bias", Shape({1}), 0.0f);
  const auto bare = Load(std::move(split), SmallConfig());
  ASSERT_TRUE(bare.ok()) << bare.status();
  const Tensor latent = Latent(Shape({1, 2, 2, 2, 2}));
  EXPECT_EQ(Values((*prefixed)->Decode(latent, {}).value()),
            Values((*bare)->Decode(latent, {}).value()));
}

TEST_F(ConvDecoderTest, NamesUnknownAndMissingTensors) {
  TestWeights extra = SmallWeights();
  extra.AddConstant("decoder.up_blocks.2.conv.conv.bias", Shape({1}), 0.0f);
  const auto unknown = Load(std::move(extra), SmallConfig());
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("up_blocks.2.conv.conv.bias"));

  TestWeights less = SmallWeights();
  less.Remove("decoder.conv_out.conv.bias");
  const auto missing = Load(std::move(less), SmallConfig());
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("decoder.conv_out.conv.bias"));
}

TEST_F(ConvDecoderTest, RefusesStatisticsOfAnotherWidth) {
  TestWeights weights = SmallWeights();
  weights.AddConstant("per_channel_statistics.std-of-means", Shape({3}), 1.0f);
  const auto decoder = Load(std::move(weights), SmallConfig());
  EXPECT_EQ(decoder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(decoder.status().message()), HasSubstr("std-of-means"));
}

TEST_F(ConvDecoderTest, ConditioningNeedsItsTensors) {
  VideoDecoderConfig config = SmallConfig();
  config.timestep_conditioning = true;
  const auto decoder = Load(SmallWeights(), config);
  EXPECT_EQ(decoder.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(decoder.status().message()), HasSubstr("vae.timestep_conditioning"));
  EXPECT_THAT(std::string(decoder.status().message()), HasSubstr("timestep_scale_multiplier"));
}

TEST_F(ConvDecoderTest, ConditionedDecoderDrawsTheLatentsShapeInChannelOrder) {
  VideoDecoderConfig config = SmallConfig();
  config.timestep_conditioning = true;
  TestWeights weights = SmallWeights();
  weights.AddConstant("decoder.timestep_scale_multiplier", Shape(), 1000.0f);
  const std::string last = "decoder.last_time_embedder.timestep_embedder.";
  weights.AddModule(last + "linear_1", Shape({4, 256}));
  weights.AddModule(last + "linear_2", Shape({4, 4}));
  weights.AddVaried("decoder.last_scale_shift_table", Shape({2, 2}));
  const std::string block = "decoder.up_blocks.1.time_embedder.timestep_embedder.";
  weights.AddModule(block + "linear_1", Shape({8, 256}));
  weights.AddModule(block + "linear_2", Shape({8, 8}));
  weights.AddVaried("decoder.up_blocks.1.res_blocks.0.scale_shift_table", Shape({4, 2}));
  const auto decoder = Load(std::move(weights), config).value();
  EXPECT_TRUE(decoder->timestep_conditioned());

  const Tensor latent = Latent(Shape({1, 2, 3, 4, 2}));
  const auto without = decoder->Decode(latent, {});
  EXPECT_EQ(without.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("noise source"));

  std::vector<Shape> drawn;
  ConvDecodeOptions options;
  options.noise = [&](const Shape& shape, DType) -> absl::StatusOr<Tensor> {
    drawn.push_back(shape);
    return Iota(shape);
  };
  EXPECT_TRUE(decoder->Decode(latent, options).ok());
  EXPECT_THAT(drawn, ElementsAre(Shape({1, 2, 2, 3, 4})));
}

TEST_F(ConvDecoderTest, RefusesLatentsItCannotDecode) {
  const auto decoder = Load(SmallWeights(), SmallConfig()).value();
  const auto wide = decoder->Decode(Latent(Shape({1, 1, 2, 2, 3})), {});
  EXPECT_EQ(wide.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wide.status().message()), HasSubstr("[1, 1, 2, 2, 3]"));
  EXPECT_EQ(decoder->StartDecode(Latent(Shape({1, 0, 2, 2, 2})), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ConvDecoderTest, RefusesBlocksOfTheEncoder) {
  VideoDecoderConfig config = SmallConfig();
  config.base_channels = 4;
  config.blocks = {Entry(VideoBlockKind::kCompressSpaceRes)};
  const auto decoder = Load(SmallWeights(), config);
  EXPECT_EQ(decoder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(decoder.status().message()), HasSubstr("compress_space_res"));
}

TEST_F(ConvDecoderTest, SessionDecodesTheFirstRowInOneUnit) {
  const auto decoder = Load(SmallWeights(), SmallConfig()).value();
  const Tensor latent = Latent(Shape({2, 2, 2, 3, 2}));
  auto session = decoder->StartDecode(latent, {}).value();
  EXPECT_EQ(session->unit_count(), 1);
  EXPECT_FALSE(session->done());
  const auto frames = session->Advance().value();
  ASSERT_TRUE(frames.has_value());
  EXPECT_TRUE(session->done());
  EXPECT_EQ(frames->first_frame, 0);
  EXPECT_EQ(frames->frames.shape(), Shape({3, 8, 12, 3}));
  EXPECT_EQ(frames->frames.dtype(), DType::kF32);
  EXPECT_EQ(session->Advance().status().code(), absl::StatusCode::kFailedPrecondition);

  const Tensor row = latent.Rows(0, 1).value();
  const Tensor video = decoder->Decode(row, {}).value();
  EXPECT_EQ(Values(frames->frames), Values(ToFrames(device(), video).value()));
}

/// Several levels, the last of which has two stacks; `last` is the block before it.
VideoDecoderConfig LevelsConfig(const VideoBlock& last) {
  VideoDecoderConfig config = SmallConfig();
  config.base_channels = 8;
  VideoBlock two = Entry(VideoBlockKind::kResX);
  two.num_layers = 2;
  config.blocks = {two, Entry(VideoBlockKind::kResX), last, Entry(VideoBlockKind::kCompressTime)};
  return config;
}

TestWeights LevelsWeights(const VideoBlock& last) {
  const int64_t volume = last.kind == VideoBlockKind::kCompressAll ? 8 : 4;
  const int64_t wide = 8 * last.multiplier;
  TestWeights weights;
  weights.AddConstant("per_channel_statistics.mean-of-means", Shape({2}), 0.5f);
  weights.AddConstant("per_channel_statistics.std-of-means", Shape({2}), 2.0f);
  weights.AddModule("decoder.conv_in.conv", Shape({wide, 2, 3, 3, 3}));
  weights.AddModule("decoder.up_blocks.0.conv.conv", Shape({2 * wide, wide, 3, 3, 3}));
  weights.AddModule("decoder.up_blocks.1.conv.conv", Shape({volume * 8, wide, 3, 3, 3}));
  for (const std::string block : {"2.res_blocks.0", "3.res_blocks.0", "3.res_blocks.1"}) {
    weights.AddModule("decoder.up_blocks." + block + ".conv1.conv", Shape({8, 8, 3, 3, 3}));
    weights.AddModule("decoder.up_blocks." + block + ".conv2.conv", Shape({8, 8, 3, 3, 3}));
  }
  weights.AddModule("decoder.conv_out.conv", Shape({12, 8, 3, 3, 3}));
  return weights;
}

TEST_F(ConvDecoderTest, PartsHaveTheBitsOfTheWholeAndComeInOrder) {
  VideoBlock residual = Entry(VideoBlockKind::kCompressAll, 2);
  residual.residual = true;
  for (const VideoBlock& last :
       {Entry(VideoBlockKind::kCompressSpace, 2), Entry(VideoBlockKind::kCompressAll), residual}) {
    for (const bool causal : {false, true}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        VideoDecoderConfig config = LevelsConfig(last);
        config.causal = causal;
        const auto whole = Load(LevelsWeights(last), config, DecodeParts{0}, dtype).value();
        const Tensor latent = Latent(Shape({1, 13, 2, 3, 2}));
        const Tensor video = whole->Decode(latent, {}).value();
        const std::vector<float> expected =
            Values(ToFrames(device(), video.Reshape(Shape(video.shape().dims().subspan(1))).value())
                       .value());
        const int64_t clip_frames = video.dim(1);
        const int64_t frame = 3 * video.dim(2) * video.dim(3);
        for (const int64_t part : {2, 4, 8, 12}) {
          const auto decoder =
              Load(LevelsWeights(last), config, DecodeParts{part * 4 * 6}, dtype).value();
          auto session = decoder->StartDecode(latent, {}).value();
          const int64_t units = session->unit_count();
          // One for what comes before the last level.
          EXPECT_GE(units, 1 + clip_frames / (part + 2));
          std::vector<float> frames;
          int64_t most = 0;
          while (!session->done()) {
            const auto made = session->Advance().value();
            EXPECT_EQ(session->unit_count(), units);
            if (!made.has_value()) continue;
            EXPECT_EQ(made->first_frame, static_cast<int64_t>(frames.size()) / frame);
            EXPECT_EQ(made->frames.dtype(), DType::kF32);
            most = std::max(most, made->frames.dim(0));
            const std::vector<float> values = Values(made->frames);
            frames.insert(frames.end(), values.begin(), values.end());
          }
          EXPECT_EQ(session->units_done(), units);
          EXPECT_EQ(session->Advance().status().code(), absl::StatusCode::kFailedPrecondition);
          EXPECT_LE(most, part + 4);
          EXPECT_EQ(frames, expected) << VideoBlockName(last.kind) << causal << part;
        }
      }
    }
  }
}

TEST_F(ConvDecoderTest, PartsTakeLessMemoryAndGiveItBackAtAnyUnit) {
  const VideoBlock last = Entry(VideoBlockKind::kCompressSpace, 2);
  const VideoDecoderConfig config = LevelsConfig(last);
  const Tensor latent = Latent(Shape({1, 41, 2, 3, 2}));
  // Scratch of products does not depend on the clip's length.
  const auto activations = static_cast<int>(MemoryOwner::kActivations);
  const auto peak = [&](const ConvDecoder& decoder) {
    device().ledger().ResetPeaks();
    const int64_t before = device().ledger().Read().by_owner[activations].live_bytes;
    auto session = decoder.StartDecode(latent, {}).value();
    while (!session->done()) EXPECT_TRUE(session->Advance().ok());
    const MemoryLedger::Snapshot after = device().ledger().Read();
    EXPECT_EQ(after.by_owner[activations].live_bytes, before);
    return after.by_owner[activations].peak_bytes - before;
  };
  const auto whole = Load(LevelsWeights(last), config, DecodeParts{0}).value();
  const auto parts = Load(LevelsWeights(last), config, DecodeParts{int64_t{4} * 24}).value();
  EXPECT_LT(2 * peak(*parts), peak(*whole));

  const int64_t live = device().ledger().Read().total.live_bytes;
  const int64_t units = parts->StartDecode(latent, {}).value()->unit_count();
  for (int64_t stop = 0; stop < units; ++stop) {
    auto session = parts->StartDecode(latent, {}).value();
    while (session->units_done() < stop) ASSERT_TRUE(session->Advance().ok());
    session.reset();
    EXPECT_EQ(device().ledger().Read().total.live_bytes, live) << stop;
  }
}

TEST_F(ConvDecoderTest, WhatLooksAcrossAClipIsDecodedWhole) {
  // Noise would be drawn part by part.
  const VideoBlock last = Entry(VideoBlockKind::kCompressSpace, 2);
  VideoDecoderConfig config = LevelsConfig(last);
  config.blocks[0].inject_noise = true;
  TestWeights weights = LevelsWeights(last);
  for (const std::string block : {"0", "1"}) {
    for (const std::string half : {"1", "2"}) {
      weights.AddVaried(
          absl::StrCat("decoder.up_blocks.3.res_blocks.", block, ".per_channel_scale", half),
          Shape({8, 1, 1}));
    }
  }
  const auto decoder = Load(std::move(weights), config, DecodeParts{int64_t{2} * 24}).value();
  EXPECT_EQ(decoder->StartDecode(Latent(Shape({1, 13, 2, 3, 2})), {}).value()->unit_count(), 1);
}

TEST_F(ConvDecoderTest, FramesAreShiftedAndClamped) {
  const Tensor video = Make(Shape({1, 1, 2, 3}), [](int64_t i) { return -1.5f + 0.75f * i; });
  EXPECT_THAT(Values(ToFrames(device(), video).value()),
              ElementsAre(0.0f, 0.125f, 0.5f, 0.875f, 1.0f, 1.0f));
}

}  // namespace
}  // namespace ltx::video_vae
