#include "tools/random_model/model_layout.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace ltx::random_model {
namespace {

using checkpoint::GemmaFamily;

struct Count {
  int64_t tensors = 0;
  int64_t values = 0;
};

/// Over the names that contain `part`.
Count CountOf(const FileLayout& file, const std::string& part) {
  Count count;
  for (const auto& [name, shape] : file.tensors) {
    if (!absl::StrContains(name, part)) continue;
    ++count.tensors;
    count.values += shape.num_elements();
  }
  return count;
}

// What is known of the published files.

TEST(ModelLayoutTest, TransformerHasThePublishedSize) {
  const FileLayout file = TransformerFile(FullSize()).value();
  EXPECT_EQ(file.tensors.size(), 4349u);
  const Count connectors = CountOf(file, "_embeddings_connector.");
  EXPECT_EQ(connectors.tensors, 2 * 129);
  EXPECT_NEAR(static_cast<double>(file.num_values() - connectors.values), 18.988e9, 0.001e9);
  EXPECT_NEAR(2.0 * static_cast<double>(file.num_values()), 42.02e9, 0.02e9);
  const FileLayout older = TransformerFile(FullSize(GemmaFamily::kGemma3)).value();
  EXPECT_EQ(static_cast<int64_t>(older.tensors.size()) - connectors.tensors, 4186);
}

TEST(ModelLayoutTest, TextEncoderHasThePublishedSize) {
  const FileLayout file = TextEncoderFile(FullSize()).value();
  EXPECT_EQ(CountOf(file, "text_embedding_projection.").values, 1156061184);
  int64_t matrices = 0;
  for (const auto& [name, shape] : file.tensors) {
    if (absl::StartsWith(name, "model.") && shape.rank() == 2) matrices += shape.num_elements();
  }
  EXPECT_EQ(matrices, 11906580480);
  EXPECT_EQ(file.tensors.count("model.layers.4.self_attn.v_proj.weight"), 1u);
  EXPECT_EQ(file.tensors.count("model.layers.5.self_attn.v_proj.weight"), 0u);
  const FileLayout older = TextEncoderFile(FullSize(GemmaFamily::kGemma3)).value();
  EXPECT_EQ(older.tensors.count("language_model.model.layers.5.self_attn.v_proj.weight"), 1u);
}

TEST(ModelLayoutTest, VideoVaeHasThePublishedSize) {
  const FileLayout file = VideoVaeFile(FullSize()).value();
  EXPECT_NEAR(static_cast<double>(CountOf(file, "decoder.").values), 407e6, 0.5e6);
  EXPECT_NEAR(static_cast<double>(CountOf(file, "encoder.").values), 319e6, 0.5e6);
}

TEST(ModelLayoutTest, AudioVaeHasThePublishedSize) {
  const FileLayout file = AudioVaeFile(FullSize()).value();
  const Count encoder = CountOf(file, "audio_vae.encoder.");
  const Count decoder = CountOf(file, "audio_vae.decoder.");
  // The published counts include the two statistics.
  EXPECT_EQ(encoder.tensors + 2, 46);
  EXPECT_EQ(decoder.tensors + 2, 58);
  EXPECT_NEAR(static_cast<double>(encoder.values), 21.3e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(decoder.values), 31.9e6, 0.05e6);
  const Count vocoder = CountOf(file, "vocoder.");
  EXPECT_EQ(vocoder.tensors, 1227);
  EXPECT_NEAR(static_cast<double>(vocoder.values), 129.1e6, 0.05e6);
}

TEST(ModelLayoutTest, UpsamplerHasThePublishedSize) {
  const FileLayout file = SpatialUpsamplerFile(FullSize()).value();
  EXPECT_NEAR(static_cast<double>(file.num_values()), 498e6, 0.5e6);
}

TEST(ModelLayoutTest, FilesOfASetHaveOneKindEach) {
  std::set<checkpoint::FileKind> kinds;
  std::set<std::string> paths;
  const std::vector<FileLayout> files = FilesOf(TinySize()).value();
  for (const FileLayout& file : files) {
    EXPECT_TRUE(kinds.insert(file.kind).second) << file.path;
    EXPECT_TRUE(paths.insert(file.path).second) << file.path;
  }
  EXPECT_EQ(kinds.size(), 6u);
  EXPECT_EQ(FilesOf(TinySize(GemmaFamily::kGemma3)).value().size(), 5u);
}

TEST(ModelLayoutTest, ASizeThatNoConfigCanSayIsRefused) {
  ModelSize size = TinySize();
  size.heads = 0;
  EXPECT_EQ(TransformerFile(size).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::random_model
