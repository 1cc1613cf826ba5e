#include "engine/text/gemma_assets.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::text {
namespace {

using checkpoint::MakeTestFolder;
using checkpoint::SafetensorsWriter;
using checkpoint::WriteTestFile;
using ::testing::HasSubstr;

SafetensorsWriter Pack() {
  SafetensorsWriter writer;
  writer.Metadata("gemma_config", std::string(R"({"model_type": "gemma3"})"));
  writer.Raw("tokenizer_json", DType::kU8, {2}, "{}");
  writer.Raw("hf_asset__tokenizer_config.json", DType::kU8, {2}, "[]");
  writer.Floats("model.norm.weight", {1}, {1.0f});
  return writer;
}

absl::StatusOr<GemmaAssets> LoadPack(const SafetensorsWriter& writer) {
  const std::string path = MakeTestFolder("pack") + "/text.safetensors";
  writer.WriteTo(path);
  return LoadGemmaAssets(path);
}

TEST(GemmaAssetsTest, ReadsOneFile) {
  const auto assets = LoadPack(Pack());
  ASSERT_TRUE(assets.ok()) << assets.status();
  EXPECT_EQ(assets->config["model_type"], "gemma3");
  EXPECT_EQ(assets->tokenizer_json, "{}");
  EXPECT_EQ(assets->tokenizer_config_json, "[]");
  EXPECT_TRUE(assets->weights.Contains("model.norm.weight"));
}

TEST(GemmaAssetsTest, TextsMayBeStoredAsOtherIntegers) {
  const std::string text = "{\"\xe2\x96\x81\"}";
  std::vector<int64_t> wide;
  for (const char c : text) wide.push_back(c);  // Negative where the byte is above 127.
  const auto length = static_cast<int64_t>(text.size());
  const auto signed_bytes = LoadPack(Pack().Raw("tokenizer_json", DType::kI8, {length}, text));
  ASSERT_TRUE(signed_bytes.ok()) << signed_bytes.status();
  EXPECT_EQ(signed_bytes->tokenizer_json, text);
  const auto wide_integers = LoadPack(Pack().Ints("tokenizer_json", {length}, wide));
  ASSERT_TRUE(wide_integers.ok()) << wide_integers.status();
  EXPECT_EQ(wide_integers->tokenizer_json, text);
}

TEST(GemmaAssetsTest, SideFilesMayBeMetadataButATensorWins) {
  SafetensorsWriter writer = Pack();
  writer.Metadata("tokenizer_config.json", std::string("{\"old\": 1}"));
  EXPECT_EQ(LoadPack(writer)->tokenizer_config_json, "[]");
  writer.Remove("hf_asset__tokenizer_config.json");
  EXPECT_EQ(LoadPack(writer)->tokenizer_config_json, "{\"old\": 1}");
}

TEST(GemmaAssetsTest, NamesWhatIsMissingOrMalformed) {
  const struct {
    SafetensorsWriter writer;
    absl::StatusCode code;
    const char* name;
  } kCases[] = {
      {Pack().RemoveMetadata("gemma_config"), absl::StatusCode::kNotFound, "gemma_config"},
      {Pack().Metadata("gemma_config", std::string("{")), absl::StatusCode::kInvalidArgument,
       "gemma_config"},
      {Pack().Remove("tokenizer_json"), absl::StatusCode::kNotFound, "tokenizer_json"},
      {Pack().Remove("hf_asset__tokenizer_config.json"), absl::StatusCode::kNotFound,
       "tokenizer_config.json"},
      {Pack().Floats("tokenizer_json", {1}, {1.0f}), absl::StatusCode::kInvalidArgument,
       "tokenizer_json"},
      {Pack().Raw("tokenizer_json", DType::kU8, {1, 2}, "{}"), absl::StatusCode::kInvalidArgument,
       "tokenizer_json"}};
  for (const auto& c : kCases) {
    const absl::Status status = LoadPack(c.writer).status();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(status.message(), HasSubstr(c.name));
  }
  EXPECT_EQ(LoadGemmaAssets("/no/such/path").status().code(), absl::StatusCode::kNotFound);
}

TEST(GemmaAssetsTest, SearchesAFolder) {
  const std::string root = MakeTestFolder("folder");
  ASSERT_TRUE(std::filesystem::create_directories(root + "/weights/more"));
  WriteTestFile(root + "/config.json", R"({"model_type": "gemma3"})");
  WriteTestFile(root + "/weights/config.json", R"({"model_type": "other"})");
  WriteTestFile(root + "/weights/tokenizer.json", "{}");
  WriteTestFile(root + "/tokenizer_config.json", "[]");
  SafetensorsWriter()
      .Floats("a", {1}, {1})
      .WriteTo(root + "/weights/model-00001-of-00002.safetensors");
  SafetensorsWriter().Floats("b", {1}, {1}).WriteTo(root + "/weights/more/rest.safetensors");
  SafetensorsWriter().Floats("c", {1}, {1}).WriteTo(root + "/elsewhere.safetensors");
  const auto assets = LoadGemmaAssets(root);
  ASSERT_TRUE(assets.ok()) << assets.status();
  // The upper of two files of one name.
  EXPECT_EQ(assets->config["model_type"], "gemma3");
  EXPECT_EQ(assets->tokenizer_json, "{}");
  EXPECT_TRUE(assets->weights.Contains("a"));
  EXPECT_TRUE(assets->weights.Contains("b"));
  EXPECT_FALSE(assets->weights.Contains("c"));
  std::filesystem::remove(root + "/weights/tokenizer.json");
  EXPECT_THAT(LoadGemmaAssets(root).status().message(), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace ltx::text
