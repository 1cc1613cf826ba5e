#include "engine/checkpoint/model_set.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTiny[] = "models/ltx-tiny";
constexpr char kTransformer[] = "diffusion_models/ltx-tiny-distilled-transformer-bf16.safetensors";
constexpr char kText[] = "text_encoders/gemma4-tiny-with-proj-ltx-tiny-bf16.safetensors";
constexpr char kVideo[] = "vae/ltx-tiny-video-vae-conv-bf16.safetensors";
constexpr char kAudio[] = "vae/ltx-tiny-audio-vae-bf16.safetensors";
constexpr char kUpsampler[] =
    "latent_upscale_models/ltx-tiny-latent-spatial-upscaler-x2-bf16-1.0.safetensors";
constexpr char kDuration[] = "model_patches/ltx-tiny-duration-head-bf16.safetensors";

/// A copy of the small model that a test then breaks: links to its files, except what is rewritten.
class ModelSetTest : public ::testing::Test {
 protected:
  ModelSetTest() : folder_(MakeTestFolder("model_set") + "/broken") {
    for (const char* file :
         {kTransformer, kText, kVideo, kAudio, kUpsampler, kDuration, "model.json"}) {
      const fs::path target = fs::path(folder_) / file;
      fs::create_directories(target.parent_path());
      fs::create_symlink(fs::canonical(fs::path(kTiny) / file), target);
    }
  }
  void Write(const std::string& file, const std::string& bytes) {
    Delete(file);
    WriteTestFile(absl::StrCat(folder_, "/", file), bytes);
  }
  void Write(const std::string& file, const SafetensorsWriter& writer) {
    Write(file, writer.Bytes());
  }
  void Delete(const std::string& file) { fs::remove(fs::path(folder_) / file); }
  static SafetensorsWriter Original(const std::string& file) {
    return SafetensorsWriter::Copy(absl::StrCat(kTiny, "/", file));
  }
  /// Rewrites one value of a file's config; a path like "/transformer/ff_bias".
  void SetConfig(const std::string& file, const std::string& path, const nlohmann::json& value) {
    SafetensorsWriter writer = Original(file);
    nlohmann::json config = nlohmann::json::parse(writer.metadata().at("config"));
    config[nlohmann::json::json_pointer(path)] = value;
    Write(file, writer.JsonMetadata("config", config));
  }
  void ExpectError(absl::StatusCode code, const std::vector<std::string>& names) {
    const auto set = ModelSet::Open(folder_);
    EXPECT_EQ(set.status().code(), code) << set.status();
    for (const std::string& name : names) {
      EXPECT_THAT(std::string(set.status().message()), HasSubstr(name));
    }
  }
  void ExpectInvalid(const std::vector<std::string>& names) {
    ExpectError(absl::StatusCode::kInvalidArgument, names);
  }
  std::string folder_;
};

TEST_F(ModelSetTest, OpensTheSmallModel) {
  const auto set = ModelSet::Open(kTiny);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->name, "ltx-tiny");
  EXPECT_EQ(set->kind, ModelKind::kDistilled);
  EXPECT_EQ(set->model_version, "2.5.1");
  EXPECT_EQ(set->defaults.width, 256);
  EXPECT_EQ(set->defaults.height, 192);
  EXPECT_EQ(set->defaults.num_frames, 25);
  EXPECT_EQ(set->defaults.frame_rate, 24.0);
  EXPECT_EQ(set->limits.max_frames, 49);
  EXPECT_EQ(set->transformer.num_layers, 4);
  EXPECT_EQ(set->transformer.video_width(), 128);
  EXPECT_TRUE(set->transformer.double_precision_rope);
  EXPECT_TRUE(set->keyframe_embedding);
  EXPECT_EQ(set->gemma.hidden_size, 64);
  EXPECT_EQ(set->text_projection.feature_extractor.video_width, 128);
  EXPECT_EQ(set->video_decoder.bottleneck_channels(), 48);
  EXPECT_EQ(set->audio_vae.ch, 128);
  EXPECT_EQ(set->vocoder.output_sampling_rate, 48000);
  ASSERT_TRUE(set->spatial_upsampler.has_value());
  EXPECT_EQ(set->spatial_upsampler->config.dims, 2);
  EXPECT_FALSE(set->temporal_upsampler.has_value());
  ASSERT_TRUE(set->duration_head.has_value());
  EXPECT_THAT(set->loras, IsEmpty());
  EXPECT_THAT(set->warnings, IsEmpty());
  EXPECT_THAT(set->unrecognised_files, IsEmpty());
}

TEST_F(ModelSetTest, NamesAndKindWithoutAManifest) {
  Delete("model.json");
  const auto set = ModelSet::Open(folder_ + "/");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->name, "broken");
  EXPECT_EQ(set->kind, ModelKind::kDistilled);
  EXPECT_FALSE(set->defaults.width.has_value());
  Delete(kTransformer);
  Write("other.safetensors", Original(kTransformer));
  const auto dev = ModelSet::Open(folder_);
  ASSERT_TRUE(dev.ok()) << dev.status();
  EXPECT_EQ(dev->kind, ModelKind::kDev);
}

TEST_F(ModelSetTest, MissingFolderAndFiles) {
  for (const char* folder : {"", "/nonexistent/folder", "models/ltx-tiny/model.json"}) {
    EXPECT_EQ(ModelSet::Open(folder).status().code(), absl::StatusCode::kNotFound);
  }
  const std::pair<const char*, const char*> required[] = {{kTransformer, "transformer"},
                                                          {kText, "text_encoder"},
                                                          {kVideo, "video_vae"},
                                                          {kAudio, "audio_vae"}};
  for (const auto& [file, kind] : required) {
    const fs::path path = fs::path(folder_) / file;
    const fs::path aside = fs::path(folder_) / "aside";
    fs::rename(path, aside);
    ExpectError(absl::StatusCode::kNotFound, {kind, folder_});
    fs::rename(aside, path);
  }
  Delete(kUpsampler);
  Delete(kDuration);
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_FALSE(set->spatial_upsampler.has_value());
  EXPECT_FALSE(set->duration_head.has_value());
}

TEST_F(ModelSetTest, TwoFilesOfOneKind) {
  Write("vae/second.safetensors", Original(kVideo));
  ExpectInvalid({kVideo, "vae/second.safetensors", "video_vae"});
  Write("model.json", R"({"files":{"video_vae":"vae/second.safetensors"}})");
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->video_vae_file->path(), HasSubstr("second"));
}

TEST_F(ModelSetTest, ManifestNamesAFileOfAnotherKind) {
  Write("model.json", absl::StrCat(R"({"files":{"video_vae":")", kAudio, R"("}})"));
  ExpectInvalid({"video_vae", kAudio});
  Write("model.json", R"({"files":{"video_vae":"vae/none.safetensors"}})");
  ExpectError(absl::StatusCode::kNotFound, {"vae/none.safetensors"});
  Write("model.json", R"({"kinds":"dev"})");
  ExpectInvalid({"model.json", "kinds"});
}

TEST_F(ModelSetTest, CombinedLayout) {
  // One file with transformer, projection, VAEs and vocoder; the text encoder apart.
  SafetensorsWriter combined = Original(kTransformer);
  nlohmann::json config = nlohmann::json::parse(combined.metadata().at("config"));
  SafetensorsWriter text = Original(kText);
  for (const char* source : {kVideo, kAudio, kText}) {
    const auto file = SafetensorsFile::Open(absl::StrCat(kTiny, "/", source)).value();
    const bool bare = std::string(source) == kVideo;
    for (const auto& [name, entry] : file->entries()) {
      const bool projection = name.rfind("text_embedding_projection.", 0) == 0;
      if (std::string(source) == kText) {
        if (!projection) continue;
        text.Remove(name);
      }
      combined.Raw(
          absl::StrCat(bare ? "vae." : "", name), entry.dtype, entry.shape,
          absl::string_view(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()));
    }
    const auto own = file->metadata().find("config");
    if (own != file->metadata().end()) config.update(nlohmann::json::parse(own->second));
  }
  Write("combined.safetensors", combined.JsonMetadata("config", config));
  Write(kText, text);
  for (const char* file : {kTransformer, kVideo, kAudio}) Delete(file);
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->transformer_file->path(), set->video_vae_file->path());
  EXPECT_EQ(set->transformer_file->path(), set->audio_vae_file->path());
}

TEST_F(ModelSetTest, HuggingFaceTextEncoderFolder) {
  const std::string config = Original(kText).metadata().at("gemma_config");
  SafetensorsWriter transformer = Original(kTransformer);
  const auto text = SafetensorsFile::Open(absl::StrCat(kTiny, "/", kText)).value();
  for (const auto& [name, entry] : text->entries()) {
    if (name.rfind("text_embedding_projection.", 0) != 0) continue;
    transformer.Raw(
        name, entry.dtype, entry.shape,
        absl::string_view(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()));
  }
  Delete(kText);
  Write("gemma/config.json", config);
  Write("gemma/tokenizer.json", "{}");
  Write("gemma/model.safetensors", SafetensorsWriter().Floats("decoder.x", {1}, {1.0f}));
  // Without the projection, which no file holds now.
  ExpectError(absl::StatusCode::kNotFound, {"video_aggregate_embed"});
  Write(kTransformer, transformer);
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->text_encoder_path, folder_ + "/gemma");
  Write("gemma/config.json", "{}");
  ExpectInvalid({"gemma", "model_type"});
}

TEST_F(ModelSetTest, TruncatedAndForeignFiles) {
  const std::string bytes = ReadTestFile(absl::StrCat(kTiny, "/", kVideo));
  Write(kVideo, bytes.substr(0, bytes.size() - 1));
  ExpectInvalid({kVideo});
  Write(kVideo, "not a checkpoint");
  ExpectInvalid({kVideo});
  Write(kVideo, bytes);
  Write("stray.safetensors", SafetensorsWriter().Floats("x", {1}, {1.0f}));
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->unrecognised_files, ::testing::ElementsAre(folder_ + "/stray.safetensors"));
}

TEST_F(ModelSetTest, ConfigMissingOrBroken) {
  for (const char* file : {kTransformer, kVideo, kAudio, kUpsampler, kDuration}) {
    SCOPED_TRACE(file);
    SafetensorsWriter writer = Original(file);
    Write(file, SafetensorsWriter(writer).RemoveMetadata("config"));
    ExpectInvalid({file, "config"});
    Write(file, SafetensorsWriter(writer).Metadata("config", "{\"transformer\":"));
    ExpectInvalid({file, "config"});
    Write(file, writer);
  }
  Write(kText, Original(kText).RemoveMetadata("gemma_config"));
  ExpectInvalid({kText, "gemma_config"});
}

TEST_F(ModelSetTest, ConfigThatContradictsTheTensors) {
  struct Case {
    const char* file;
    const char* path;
    nlohmann::json value;
    std::vector<std::string> names;
  };
  const std::vector<Case> cases = {
      {kTransformer, "/transformer/ff_bias", true, {"ff.net.2.bias", "ff_bias"}},
      {kTransformer, "/transformer/audio_ff_bias", false, {"audio_ff.net.2.bias"}},
      {kTransformer, "/transformer/apply_gated_attention", false, {"to_gate_logits"}},
      {kTransformer, "/transformer/cross_attention_adaln", false, {"adaln"}},
      {kTransformer, "/transformer/use_prompt_adaln_single", false, {"prompt_adaln_single"}},
      {kTransformer, "/transformer/num_layers", 3, {"num_layers"}},
      {kTransformer, "/transformer/num_layers", 5, {"num_layers"}},
      {kTransformer, "/transformer/attention_head_dim", 64, {"width"}},
      {kTransformer, "/transformer/use_keyframes_abs_pos_embedding", false, {"keyframes"}},
      {kTransformer, "/transformer/connector_ff_bias", false, {"connector_ff_bias"}},
      {kTransformer, "/transformer/connector_num_layers", 2, {"connector_num_layers"}},
      {kTransformer, "/transformer/activation_fn", "gelu", {"activation_fn"}},
      {kTransformer, "/transformer/rope_type", "spiral", {"rope_type", "spiral"}},
      {kTransformer, "/transformer/caption_proj_input_norm", true, {"caption_proj_input_norm"}},
      {kVideo, "/vae/decoder_base_channels", 16, {"conv_in.conv.weight"}},
      {kVideo, "/vae/patch_size", 8, {"patch_size", "latent cell"}},
      {kVideo, "/vae/timestep_conditioning", true, {"timestep_conditioning"}},
      {kAudio, "/audio_vae/model/params/ddconfig/z_channels", 16, {"conv_in.conv.weight"}},
      {kAudio, "/vocoder/vocoder/upsample_initial_channel", 64, {"conv_pre.weight"}},
      {kAudio, "/vocoder/bwe/hop_length", 100, {"hop_length"}},
      {kUpsampler, "/mid_channels", 64, {"initial_conv.weight"}},
      {kUpsampler, "/num_blocks_per_stage", 2, {"num_blocks_per_stage"}},
      {kDuration, "/duration_head/pooler_hidden_dim", 64, {"video_input_proj.weight"}},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.path);
    SetConfig(bad.file, bad.path, bad.value);
    const auto set = ModelSet::Open(folder_);
    EXPECT_EQ(set.status().code(), absl::StatusCode::kInvalidArgument) << set.status();
    EXPECT_THAT(std::string(set.status().message()), HasSubstr(bad.file));
    bool named = false;
    for (const std::string& name : bad.names) {
      named = named || absl::StrContains(set.status().message(), name);
    }
    EXPECT_TRUE(named) << set.status();
    Write(bad.file, Original(bad.file));
  }
}

TEST_F(ModelSetTest, FilesThatDoNotBelongTogether) {
  SetConfig(kVideo, "/vae/latent_channels", 64);
  ExpectInvalid(
      {kTransformer, kVideo, "in_channels is 128", "latent channels of the decoder is 64"});
  Write(kVideo, Original(kVideo));
  SetConfig(kAudio, "/audio_vae/model/params/ddconfig/ch", 64);
  ExpectInvalid({kTransformer, kAudio, "audio_in_channels"});
  Write(kAudio, Original(kAudio));
  SetConfig(kUpsampler, "/in_channels", 16);
  ExpectInvalid({kTransformer, kUpsampler, "in_channels"});
  Write(kUpsampler, Original(kUpsampler));
  SetConfig(kDuration, "/transformer/cross_attention_dim", 256);
  ExpectInvalid({kTransformer, kDuration, "cross_attention_dim"});
  Write(kDuration, Original(kDuration));
  SetConfig(kDuration, "/transformer/audio_cross_attention_dim", 256);
  ExpectInvalid({kTransformer, kDuration, "audio_cross_attention_dim"});
  Write(kDuration, Original(kDuration));
  // The connectors that feed the transformer are in its own file.
  SetConfig(kTransformer, "/transformer/cross_attention_dim", 64);
  ExpectInvalid({kTransformer, "cross_attention_dim", "width of the video connector"});
  SetConfig(kTransformer, "/transformer/audio_cross_attention_dim", 128);
  ExpectInvalid({kTransformer, "audio_cross_attention_dim", "width of the audio connector"});
}

TEST_F(ModelSetTest, WidthsAndFactorsThatDoNotBelongTogether) {
  struct Case {
    const char* file;
    const char* path;
    nlohmann::json value;
    const char* what;
  };
  const std::vector<Case> cases = {
      {kTransformer, "/transformer/out_channels", 64, "config.transformer.out_channels is 64"},
      {kTransformer, "/transformer/audio_out_channels", 64,
       "config.transformer.audio_out_channels is 64"},
      {kTransformer, "/transformer/audio_attention_head_dim", 32,
       "width of the audio features is 128"},
      {kVideo, "/vae/decoder_blocks/3/0", "compress_all",
       "pixels per latent cell of the decoder is 64"},
      {kVideo, "/vae/decoder_blocks/1/0", "compress_all",
       "frames per latent frame of the decoder is 16"},
      {kVideo, "/vae/encoder_blocks/0/0", "compress_time_res",
       "pixels per latent cell of the encoder is 16"},
      {kVideo, "/vae/encoder_blocks/0/0", "compress_space_res",
       "frames per latent frame of the encoder is 4"},
      {kAudio, "/audio_vae/model/params/sampling_rate", 8000,
       "product of vocoder.upsample_rates times sampling_rate is 1280000"},
      {kAudio, "/vocoder/bwe/hop_length", 100, "bwe.hop_length times bwe.output_sampling_rate"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    SetConfig(c.file, c.path, c.value);
    ExpectInvalid({c.file, c.what});
    Write(c.file, Original(c.file));
  }
  // The older form, which these flags name: captions of one width feed both connectors.
  nlohmann::json config = nlohmann::json::parse(Original(kTransformer).metadata().at("config"));
  for (const char* flag : {"caption_proj_before_connector", "caption_projection_first_linear",
                           "caption_proj_input_norm", "caption_projection_second_linear"}) {
    config["transformer"].erase(flag);
  }
  Write(kTransformer, Original(kTransformer).JsonMetadata("config", config));
  ExpectInvalid({kTransformer, "config.transformer.caption_channels is 24",
                 "width of the video connector is 128"});
  config["transformer"]["caption_channels"] = 128;
  Write(kTransformer, Original(kTransformer).JsonMetadata("config", config));
  ExpectInvalid({kTransformer, "config.transformer.caption_channels is 128",
                 "width of the audio connector is 64"});
}

TEST_F(ModelSetTest, WrongShapesAndMissingTensors) {
  Write(kTransformer,
        Original(kTransformer).Reshape("model.diffusion_model.patchify_proj.weight", {128, 64}));
  ExpectInvalid({kTransformer, "patchify_proj.weight", "[128, 64]", "[128, 128]"});
  Write(kTransformer, Original(kTransformer).Remove("model.diffusion_model.scale_shift_table"));
  Write(kTransformer, Original(kTransformer)
                          .Remove("model.diffusion_model.transformer_blocks.2.scale_shift_table"));
  ExpectError(absl::StatusCode::kNotFound, {kTransformer, "transformer_blocks.2"});
  Write(kTransformer, Original(kTransformer));

  Write(kVideo, Original(kVideo).Remove("per_channel_statistics.std-of-means"));
  ExpectError(absl::StatusCode::kNotFound, {kVideo, "per_channel_statistics.std-of-means"});
  Write(kVideo, Original(kVideo).Reshape("per_channel_statistics.std-of-means", {128}));
  ExpectInvalid({kVideo, "std-of-means"});
  Write(kVideo, Original(kVideo));

  Write(kText, Original(kText).Remove("tokenizer_json"));
  ExpectError(absl::StatusCode::kNotFound, {kText, "tokenizer_json"});
  Write(kText, Original(kText).Reshape("text_embedding_projection.video_aggregate_embed.weight",
                                       {64, 256}));
  ExpectInvalid({kText, "video_aggregate_embed"});
}

TEST_F(ModelSetTest, KeyframeEmbeddingMayBeMissing) {
  Write(kTransformer,
        Original(kTransformer).Remove("model.diffusion_model.keyframes_abs_pos_embedding"));
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_FALSE(set->keyframe_embedding);
  ASSERT_EQ(set->warnings.size(), 1);
  EXPECT_THAT(set->warnings[0], HasSubstr("keyframes_abs_pos_embedding"));
}

TEST_F(ModelSetTest, TextEncoderVersion) {
  Write(kTransformer,
        Original(kTransformer).Metadata("gemma_source_checkpoint", R"({"gemma_version":"other"})"));
  ExpectInvalid({kTransformer, kText, "other", "ltx-tiny-gemma4-v1"});
  Write(kTransformer, Original(kTransformer).Metadata("gemma_source_checkpoint", "other"));
  ExpectInvalid({kTransformer, "gemma_source_checkpoint"});
  // A version that has to name its text encoder, and does not.
  SafetensorsWriter anonymous = Original(kTransformer).RemoveMetadata("gemma_source_checkpoint");
  Write(kTransformer, anonymous);
  ExpectInvalid({kTransformer, "2.5.1"});
  // An older one goes with Gemma 3 alone.
  Write(kTransformer, SafetensorsWriter(anonymous).Metadata("model_version", "2.3.0"));
  ExpectInvalid({kTransformer, "gemma3"});
  // Neither side says anything: a warning.
  nlohmann::json gemma = nlohmann::json::parse(Original(kText).metadata().at("gemma_config"));
  gemma.erase("gemma_version");
  Write(kTransformer, anonymous);
  Write(kText, Original(kText).JsonMetadata("gemma_config", gemma));
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->warnings.size(), 1);
}

TEST_F(ModelSetTest, QuantisedFormsAreRefusedByName) {
  struct Case {
    const char* file;
    std::string weight;
    Shape shape;
  };
  const std::vector<Case> cases = {
      {kTransformer, "model.diffusion_model.transformer_blocks.1.attn1.to_q.weight", {128, 128}},
      {kText, "model.layers.0.self_attn.q_proj.weight", {64, 64}},
      {kText, "text_embedding_projection.audio_aggregate_embed.weight", {64, 256}},
      {kVideo, "decoder.conv_in.conv.weight", {48, 128, 3, 3, 3}},
      {kVideo, "encoder.conv_in.conv.weight", {128, 48, 3, 3, 3}},
      {kAudio, "audio_vae.decoder.conv_in.conv.weight", {128, 8, 3, 3}},
      {kAudio, "vocoder.bwe_generator.conv_pre.weight", {16, 128, 7}},
      {kUpsampler, "initial_conv.weight", {32, 128, 3, 3}},
      {kDuration, "duration_head.video_input_proj.weight", {32, 128}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.weight);
    const std::string codes(c.shape.num_elements(), '\x38');
    Write(c.file, Original(c.file)
                      .Raw(c.weight, DType::kF8E4M3, c.shape, codes)
                      .Floats(c.weight + "_scale", {}, {1.0f}));
    ExpectError(absl::StatusCode::kUnimplemented, {c.file, c.weight, "FP8"});
    Write(c.file, Original(c.file));
  }
}

TEST_F(ModelSetTest, DiffusionDecoderIsRefusedByName) {
  SetConfig(kVideo, "/vae/_class_name", "CausalDiffusionVAE");
  ExpectError(absl::StatusCode::kUnimplemented, {kVideo, "CausalDiffusionVAE"});
}

TEST_F(ModelSetTest, AdaptersAreListed) {
  Write("loras/a.safetensors",
        SafetensorsWriter()
            .Floats("diffusion_model.transformer_blocks.0.attn1.to_q.lora_A.weight", {1, 1}, {1})
            .Floats("diffusion_model.transformer_blocks.0.attn1.to_q.lora_B.weight", {1, 1}, {1}));
  Write("loras/b.safetensors",
        SafetensorsWriter().Floats("model.diffusion_model.transformer_blocks.0.x.lora_A.weight",
                                   {1, 1}, {1}));
  const auto set = ModelSet::Open(folder_);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->loras.size(), 2);
  EXPECT_EQ(set->distilled_lora, nullptr);
}

TEST_F(ModelSetTest, TheDistilledAdapterIsFoundByNameOrManifest) {
  const auto adapter =
      SafetensorsWriter()
          .Floats("diffusion_model.transformer_blocks.0.attn1.to_q.lora_A.weight", {1, 1}, {1})
          .Floats("diffusion_model.transformer_blocks.0.attn1.to_q.lora_B.weight", {1, 1}, {1});
  Write("loras/style.safetensors", adapter);
  Write("loras/ltx-distilled-lora.safetensors", adapter);
  const auto by_name = ModelSet::Open(folder_);
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  ASSERT_NE(by_name->distilled_lora, nullptr);
  EXPECT_THAT(by_name->distilled_lora->path(), HasSubstr("ltx-distilled-lora"));

  Write("loras/distilled-2.safetensors", adapter);
  ExpectInvalid({"distilled_lora", "distilled-2", "ltx-distilled-lora"});
  Write("model.json", R"({"files":{"distilled_lora":"loras/style.safetensors"}})");
  const auto by_manifest = ModelSet::Open(folder_);
  ASSERT_TRUE(by_manifest.ok()) << by_manifest.status();
  EXPECT_THAT(by_manifest->distilled_lora->path(), HasSubstr("style"));
  Write("model.json", absl::StrCat(R"({"files":{"distilled_lora":")", kAudio, R"("}})"));
  ExpectInvalid({"distilled_lora", kAudio});
}

}  // namespace
}  // namespace ltx::checkpoint
