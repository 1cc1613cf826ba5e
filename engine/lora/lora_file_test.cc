#include "engine/lora/lora_file.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/checkpoint/test_files.h"

namespace ltx::lora {
namespace {

using checkpoint::SafetensorsWriter;

std::vector<float> Ones(int64_t count) { return std::vector<float>(count, 1.0f); }

/// Rank 2, [3, 2] @ [2, 4], under the names of `module` with these factor suffixes.
SafetensorsWriter WithModule(SafetensorsWriter writer, const std::string& module,
                             const std::string& down = ".lora_A.weight",
                             const std::string& up = ".lora_B.weight") {
  writer.BFloat16s(module + down, {2, 4}, Ones(8));
  writer.Floats(module + up, {3, 2}, Ones(6));
  return writer;
}

absl::StatusOr<std::shared_ptr<const LoraFile>> Parse(const SafetensorsWriter& writer,
                                                      const LoraOptions& options = {}) {
  const std::string path = checkpoint::MakeTestFolder("lora") + "/lora.safetensors";
  writer.WriteTo(path);
  auto file = checkpoint::SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  return LoraFile::Parse(*file, options);
}

/// The message of a refusal, which must name the file.
std::string Refusal(const SafetensorsWriter& writer) {
  const absl::Status status = Parse(writer).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "lora.safetensors")) << status;
  return std::string(status.message());
}

TEST(LoraFileTest, KnowsEveryPrefixAndBothStylesOfFactors) {
  for (const char* prefix : {"", "diffusion_model.", "model.diffusion_model.", "transformer.",
                             "base_model.model.", "base_model.model.diffusion_model."}) {
    for (const auto& [down, up] :
         {std::pair<const char*, const char*>{".lora_A.weight", ".lora_B.weight"},
          {".lora_down.weight", ".lora_up.weight"}}) {
      const auto lora =
          Parse(WithModule({}, std::string(prefix) + "transformer_blocks.0.attn1.to_q", down, up));
      ASSERT_TRUE(lora.ok()) << lora.status();
      ASSERT_EQ((*lora)->modules().size(), 1u);
      const auto& [name, module] = *(*lora)->modules().begin();
      EXPECT_EQ(name, "transformer_blocks.0.attn1.to_q");
      EXPECT_EQ(module.rank(), 2);
      EXPECT_EQ(module.up->shape, Shape({3, 2}));
      EXPECT_EQ(module.scale, 1.0);
    }
  }
}

TEST(LoraFileTest, AlphaScalesUnlessItIsToBeIgnored) {
  SafetensorsWriter writer = WithModule({}, "diffusion_model.a");
  writer.Floats("diffusion_model.a.alpha", {}, {8.0f});
  const auto honoured = Parse(writer);
  ASSERT_TRUE(honoured.ok()) << honoured.status();
  EXPECT_EQ((*honoured)->modules().at("a").scale, 4.0);
  EXPECT_EQ((*honoured)->alpha_count(), 1);
  LoraOptions options;
  options.ignore_alpha = true;
  const auto ignored = Parse(writer, options);
  EXPECT_EQ((*ignored)->modules().at("a").scale, 1.0);
  EXPECT_EQ((*ignored)->alpha_count(), 0);
}

TEST(LoraFileTest, TextModulesStandApart) {
  SafetensorsWriter writer = WithModule({}, "diffusion_model.a");
  writer = WithModule(writer, "diffusion_model.video_embeddings_connector.x");
  writer = WithModule(writer, "text_embedding_projection.y");
  const auto lora = Parse(writer);
  ASSERT_TRUE(lora.ok()) << lora.status();
  EXPECT_EQ((*lora)->modules().size(), 1u);
  EXPECT_EQ((*lora)->text_modules(), (std::vector<std::string>{"text_embedding_projection.y",
                                                               "video_embeddings_connector.x"}));
}

TEST(LoraFileTest, ListsEveryNameThatIsNoFactor) {
  SafetensorsWriter writer = WithModule({}, "diffusion_model.a");
  for (int i = 0; i < 30; ++i) writer.Floats("strange." + std::to_string(i), {1}, {0.0f});
  writer.Floats(".lora_A.weight", {1, 1}, {0.0f});
  const std::string refusal = Refusal(writer);
  EXPECT_TRUE(absl::StrContains(refusal, "31 tensors are no LoRA factors: .lora_A.weight, "));
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(absl::StrContains(refusal, "strange." + std::to_string(i)));
  }
}

TEST(LoraFileTest, RefusesHalvesAndDoubles) {
  SafetensorsWriter half = WithModule({}, "diffusion_model.a");
  half.Remove("diffusion_model.a.lora_B.weight");
  EXPECT_TRUE(absl::StrContains(Refusal(half), "module \"a\" has no lora_B factor"));
  SafetensorsWriter alpha;
  alpha.Floats("a.alpha", {}, {1.0f});
  EXPECT_TRUE(absl::StrContains(Refusal(alpha), "module \"a\" has no lora_A factor"));
  EXPECT_TRUE(absl::StrContains(
      Refusal(WithModule(WithModule({}, "diffusion_model.a"), "transformer.a")), "are one factor"));
  EXPECT_TRUE(absl::StrContains(Refusal(WithModule({}, "text_embedding_projection.y")),
                                "no LoRA factors of a transformer"));
  EXPECT_TRUE(absl::StrContains(Refusal({}), "no LoRA factors of a transformer"));
}

TEST(LoraFileTest, RefusesWhatIsNoPairOfMatrices) {
  const auto changed = [](const Shape& shape) {
    return WithModule({}, "a").Reshape("a.lora_A.weight", shape);
  };
  EXPECT_TRUE(absl::StrContains(Refusal(changed({8})), "a matrix would be legal"));
  EXPECT_TRUE(absl::StrContains(Refusal(changed({2, 2, 2})), "a matrix would be legal"));
  EXPECT_TRUE(absl::StrContains(Refusal(changed({0, 4})), "a matrix would be legal"));
  EXPECT_TRUE(absl::StrContains(Refusal(changed({5, 4})), "their ranks differ"));
  SafetensorsWriter codes = WithModule({}, "a");
  codes.Remove("a.lora_A.weight");
  codes.Raw("a.lora_A.weight", DType::kF8E4M3, {2, 4}, std::string(8, '\0'));
  EXPECT_TRUE(absl::StrContains(Refusal(codes), "is F8_E4M3"));
}

TEST(LoraFileTest, RefusesAnAlphaThatIsNoNumber) {
  for (const float alpha :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    SafetensorsWriter writer = WithModule({}, "a");
    writer.Floats("a.alpha", {}, {alpha});
    EXPECT_TRUE(absl::StrContains(Refusal(writer), "must be finite"));
  }
  SafetensorsWriter writer = WithModule({}, "a");
  writer.Floats("a.alpha", {2}, {1.0f, 2.0f});
  EXPECT_TRUE(absl::StrContains(Refusal(writer), "one number would be legal"));
}

}  // namespace
}  // namespace ltx::lora
