#include "engine/checkpoint/audio_config.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

nlohmann::json Vae() {
  return nlohmann::json::parse(R"({"audio_vae":{"model":{"params":{"ddconfig":{"double_z":true,
    "mel_bins":64,"z_channels":8,"resolution":256,"in_channels":2,"out_ch":2,"ch":128,
    "ch_mult":[1,2,4],"num_res_blocks":2,"attn_resolutions":[],"mid_block_add_attention":false,
    "norm_type":"pixel","causality_axis":"height"},"sampling_rate":16000}},
    "preprocessing":{"stft":{"filter_length":1024,"hop_length":160,"causal":true},
    "mel":{"n_mel_channels":32}}}})");
}

TEST(AudioVaeConfigTest, ReadsEveryKey) {
  const auto c = ParseAudioVaeConfig(Vae());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->sampling_rate, 16000);
  EXPECT_EQ(c->hop_length, 160);
  EXPECT_EQ(c->filter_length, 1024);
  EXPECT_EQ(c->ch, 128);
  EXPECT_THAT(c->ch_mult, ElementsAre(1, 2, 4));
  EXPECT_EQ(c->downsample_factor(), 4);
  EXPECT_EQ(c->z_channels, 8);
  EXPECT_TRUE(c->attn_resolutions.empty());
  EXPECT_FALSE(c->mid_block_add_attention);
  EXPECT_EQ(c->norm_type, AudioNorm::kPixel);
  EXPECT_EQ(c->causality_axis, CausalityAxis::kHeight);
  EXPECT_EQ(c->mel_bins, 64);
}

TEST(AudioVaeConfigTest, DefaultsOfTheReference) {
  const auto c = ParseAudioVaeConfig({{"audio_vae", nlohmann::json::object()}});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_THAT(c->attn_resolutions, ElementsAre(8, 16, 32));
  EXPECT_FALSE(c->HasAttention(0));
  EXPECT_TRUE(c->HasAttention(3));
  EXPECT_TRUE(c->mid_block_add_attention);
  EXPECT_EQ(c->attn_type, AudioAttention::kVanilla);
  EXPECT_FALSE(c->mel_bins.has_value());
}

TEST(AudioVaeConfigTest, MelBinsComeFromTheFirstPlaceThatSaysSome) {
  nlohmann::json config = Vae();
  nlohmann::json& vae = config["audio_vae"];
  vae["variables"]["mel_bins"] = 16;
  vae["model"]["params"]["ddconfig"]["mel_bins"] = nullptr;
  EXPECT_EQ(ParseAudioVaeConfig(config)->mel_bins, 32);
  vae["preprocessing"]["mel"]["n_mel_channels"] = 0;
  EXPECT_EQ(ParseAudioVaeConfig(config)->mel_bins, 16);
}

TEST(AudioVaeConfigTest, CausalityAxisMayBeNull) {
  nlohmann::json config = Vae();
  nlohmann::json& ddconfig = config["audio_vae"]["model"]["params"]["ddconfig"];
  ddconfig["causality_axis"] = nullptr;
  ddconfig["norm_type"] = "group";
  const auto c = ParseAudioVaeConfig(config);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->causality_axis, CausalityAxis::kNone);
  EXPECT_EQ(c->norm_type, AudioNorm::kGroup);
}

TEST(AudioVaeConfigTest, RefusesByKey) {
  const std::vector<std::pair<const char*, nlohmann::json>> cases = {
      {"double_z", false},
      {"norm_type", "group"},
      {"norm_type", "batch"},
      {"attn_type", "linear"},
      {"causality_axis", "depth"},
      {"ch", 0},
      {"ch", 127},
      {"ch_mult", nlohmann::json::array()},
      {"ch_mult", {1, 0}},
      {"z_channels", -8},
      {"num_res_blocks", -1},
      {"resolution", "256"},
      {"attn_resolutions", 8},
      {"mel_bins", -1},
      {"mid_block_add_attention", 0},
  };
  for (const auto& [key, value] : cases) {
    nlohmann::json config = Vae();
    config["audio_vae"]["model"]["params"]["ddconfig"][key] = value;
    const auto c = ParseAudioVaeConfig(config);
    EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument) << key << " " << value;
    EXPECT_THAT(std::string(c.status().message()), HasSubstr(std::string("ddconfig.") + key));
  }
  EXPECT_FALSE(ParseAudioVaeConfig(nlohmann::json::object()).ok());
}

nlohmann::json FormA() {
  return nlohmann::json::parse(R"({"vocoder":{"resblock":"1","stereo":true,
    "output_sampling_rate":24000,"upsample_initial_channel":32,"upsample_rates":[10,6,4],
    "upsample_kernel_sizes":[20,12,8],"resblock_kernel_sizes":[3,7],
    "resblock_dilation_sizes":[[1,3,5],[1,3,5]]}})");
}

nlohmann::json FormB() {
  return nlohmann::json::parse(R"({"vocoder":{"vocoder":{"resblock":"AMP1",
    "activation":"snakebeta","stereo":true,"upsample_initial_channel":48,
    "upsample_rates":[10,4,4],"upsample_kernel_sizes":[20,8,8],"resblock_kernel_sizes":[3,7],
    "resblock_dilation_sizes":[[1,3,5],[1,3,5]],"use_tanh_at_final":false,
    "use_bias_at_final":false},"bwe":{"resblock":"AMP1","activation":"snakebeta","stereo":true,
    "upsample_initial_channel":16,"upsample_rates":[10,6,4],"upsample_kernel_sizes":[20,12,8],
    "resblock_kernel_sizes":[3,7],"resblock_dilation_sizes":[[1,3,5],[1,3,5]],
    "use_bias_at_final":false,"apply_final_activation":true,"input_sampling_rate":16000,
    "output_sampling_rate":48000,"hop_length":80,"n_fft":128,"num_mels":64}}})");
}

TEST(VocoderConfigTest, OneStage) {
  const auto c = ParseVocoderConfig(FormA());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_FALSE(c->extension.has_value());
  EXPECT_EQ(c->output_sampling_rate, 24000);
  EXPECT_EQ(c->generator.resblock, GeneratorConfig::ResBlock::kHifiGan);
  EXPECT_EQ(c->generator.total_upsampling(), 240);
  EXPECT_TRUE(c->generator.use_tanh_at_final);
}

TEST(VocoderConfigTest, TwoStages) {
  const auto c = ParseVocoderConfig(FormB());
  ASSERT_TRUE(c.ok()) << c.status();
  ASSERT_TRUE(c->extension.has_value());
  EXPECT_EQ(c->output_sampling_rate, 48000);
  EXPECT_EQ(c->generator.resblock, GeneratorConfig::ResBlock::kAmp1);
  EXPECT_FALSE(c->generator.use_tanh_at_final);
  EXPECT_TRUE(c->generator.apply_final_activation);
  // Whatever the file says.
  EXPECT_FALSE(c->extension->generator.apply_final_activation);
  EXPECT_EQ(c->extension->hop_length, 80);
  EXPECT_EQ(c->extension->n_fft, 128);
}

TEST(VocoderConfigTest, DefaultsOfTheReference) {
  const auto c = ParseVocoderConfig({{"vocoder", {{"resblock", "1"}, {"stereo", true}}}});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->generator.upsample_initial_channel, 1024);
  EXPECT_EQ(c->generator.total_upsampling(), 240);
  EXPECT_EQ(c->generator.resblock_dilation_sizes.size(), 3);
}

TEST(VocoderConfigTest, OddWidthsLoseTheHalf) {
  nlohmann::json config = FormA();
  config["vocoder"]["upsample_initial_channel"] = 44;
  const auto c = ParseVocoderConfig(config);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->generator.upsample_initial_channel, 44);
}

TEST(VocoderConfigTest, RefusesByKey) {
  const std::vector<std::pair<const char*, nlohmann::json>> cases = {
      {"/vocoder/vocoder/resblock", "1"},
      {"/vocoder/vocoder/activation", "snake"},
      {"/vocoder/vocoder/stereo", false},
      {"/vocoder/vocoder/upsample_rates", {10, 4}},
      {"/vocoder/vocoder/upsample_rates", {10, 4, 9}},
      {"/vocoder/vocoder/upsample_rates", nlohmann::json::array()},
      {"/vocoder/vocoder/upsample_rates", {1024, 1024, 1024}},
      {"/vocoder/vocoder/upsample_initial_channel", 7},
      {"/vocoder/vocoder/resblock_kernel_sizes", {3, 4}},
      {"/vocoder/vocoder/resblock_dilation_sizes", {{1, 3, 5}}},
      {"/vocoder/vocoder/resblock_dilation_sizes", {{1, 3}, {1, 3}}},
      {"/vocoder/vocoder/resblock_dilation_sizes", "x"},
      {"/vocoder/bwe/hop_length", 0},
      {"/vocoder/bwe/n_fft", 40},
      {"/vocoder/bwe/num_mels", "64"},
      {"/vocoder/bwe/output_sampling_rate", 44100},
      {"/vocoder/bwe/input_sampling_rate", nullptr},
      {"/vocoder/bwe", 3},
      {"/vocoder/vocoder", nullptr},
  };
  for (const auto& [path, value] : cases) {
    nlohmann::json config = FormB();
    config[nlohmann::json::json_pointer(path)] = value;
    const auto c = ParseVocoderConfig(config);
    EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument) << path << " " << value;
    const std::string name = path;
    EXPECT_THAT(std::string(c.status().message()), HasSubstr(name.substr(name.rfind('/') + 1)))
        << path << " " << value;
  }
  nlohmann::json mono = FormA();
  mono["vocoder"].erase("stereo");
  EXPECT_FALSE(ParseVocoderConfig(mono).ok());
  EXPECT_FALSE(ParseVocoderConfig(nlohmann::json::object()).ok());
}

}  // namespace
}  // namespace ltx::checkpoint
