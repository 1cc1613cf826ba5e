#include "engine/checkpoint/file_kind.h"

#include <string>
#include <vector>

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::set<FileKind> Kinds(const std::vector<std::string>& names, const std::string& config = "") {
  SafetensorsWriter writer;
  for (const std::string& name : names) writer.Floats(name, {1}, {1.0f});
  if (!config.empty()) writer.Metadata("config", config);
  const std::string path = MakeTestFolder("file_kind") + "/case.safetensors";
  writer.WriteTo(path);
  return RecogniseFile(*SafetensorsFile::Open(path).value());
}

TEST(FileKindTest, ByNames) {
  EXPECT_THAT(Kinds({"model.diffusion_model.transformer_blocks.0.x"}),
              ElementsAre(FileKind::kTransformer));
  EXPECT_THAT(Kinds({"decoder.conv_in.conv.weight", "encoder.x"}),
              ElementsAre(FileKind::kVideoVae));
  EXPECT_THAT(Kinds({"vae.decoder.conv_in.conv.weight"}), ElementsAre(FileKind::kVideoVae));
  EXPECT_THAT(Kinds({"audio_vae.decoder.x", "vocoder.x"}), ElementsAre(FileKind::kAudioVae));
  EXPECT_THAT(Kinds({"tokenizer_json", "decoder.x"}), ElementsAre(FileKind::kTextEncoder));
  EXPECT_THAT(Kinds({"something.else"}), IsEmpty());
  EXPECT_THAT(Kinds({}), IsEmpty());
}

TEST(FileKindTest, DurationHeadCarriesATransformerConfig) {
  EXPECT_THAT(Kinds({"duration_head.mlp_out.bias"}, R"({"transformer":{}})"),
              ElementsAre(FileKind::kDurationHead));
}

TEST(FileKindTest, UpsamplersDifferByTheirFlags) {
  const std::vector<std::string> names = {"initial_conv.weight", "final_conv.weight",
                                          "upsampler.0.weight"};
  EXPECT_THAT(Kinds(names), ElementsAre(FileKind::kSpatialUpsampler));
  EXPECT_THAT(Kinds(names, R"({"spatial_upsample":false,"temporal_upsample":true})"),
              ElementsAre(FileKind::kTemporalUpsampler));
  EXPECT_THAT(Kinds(names, R"({"temporal_upsample":true})"),
              ElementsAre(FileKind::kSpatialUpsampler));
}

TEST(FileKindTest, AdaptersAreNothingElse) {
  for (const char* suffix : {"lora_A", "lora_B", "lora_down", "lora_up"}) {
    EXPECT_THAT(Kinds({"model.diffusion_model.transformer_blocks.0.attn1.to_q." +
                       std::string(suffix) + ".weight"}),
                ElementsAre(FileKind::kLora));
  }
}

TEST(FileKindTest, CombinedFile) {
  EXPECT_THAT(Kinds({"model.diffusion_model.transformer_blocks.0.x", "vae.decoder.x",
                     "audio_vae.decoder.x", "vocoder.x", "text_embedding_projection.x"}),
              ElementsAre(FileKind::kTransformer, FileKind::kVideoVae, FileKind::kAudioVae));
}

}  // namespace
}  // namespace ltx::checkpoint
