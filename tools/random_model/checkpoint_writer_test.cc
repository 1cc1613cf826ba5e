#include "tools/random_model/checkpoint_writer.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/element_decode.h"
#include "engine/checkpoint/safetensors.h"
#include "gtest/gtest.h"

namespace ltx::random_model {
namespace {

namespace fs = std::filesystem;
using checkpoint::SafetensorsFile;

FileLayout Layout() {
  FileLayout layout;
  layout.metadata["config"] = "{}";
  layout.tensors = {{"a.weight", {1000, 1200}},  // More than one piece.
                    {"a.bias", {7}},
                    {"norm.weight", {64}}};
  layout.texts["note"] = "odd";
  return layout;
}

/// A path in an empty folder of its own.
std::string Path(const std::string& test) {
  const fs::path folder = fs::path(::testing::TempDir()) / test;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return (folder / "file.safetensors").string();
}

std::string ReadAll(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST(CheckpointWriterTest, WritesWhatTheLayoutSays) {
  const std::string path = Path("says");
  WriteOptions options;
  options.threads = 3;
  options.seed = 9;
  ASSERT_TRUE(WriteCheckpoint(Layout(), path, options).ok());
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(path)), FileBytes(Layout(), options));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->metadata().at("random_seed"), "9");
  EXPECT_EQ((*file)->entries().size(), 4u);
  const auto& note = (*file)->entries().at("note");
  EXPECT_EQ(note.dtype, DType::kU8);
  EXPECT_EQ(std::string(note.bytes.begin(), note.bytes.end()), "odd");
  const auto& weight = (*file)->entries().at("a.weight");
  EXPECT_EQ(weight.shape, Shape({1000, 1200}));
  // Every piece of it was filled, and no two with the same values.
  const std::vector<float> values = checkpoint::DecodeFloats(weight);
  const size_t piece = size_t{1} << 19;
  for (size_t begin = 0; begin < values.size(); begin += piece) {
    double squares = 0.0;
    const size_t end = std::min(values.size(), begin + piece);
    for (size_t i = begin; i < end; ++i) squares += static_cast<double>(values[i]) * values[i];
    EXPECT_NEAR(1200.0 * squares / static_cast<double>(end - begin), 1.0, 0.05);
  }
  EXPECT_NE(std::vector<float>(values.begin(), values.begin() + 100),
            std::vector<float>(values.begin() + piece, values.begin() + piece + 100));
}

TEST(CheckpointWriterTest, ThreadsDoNotMatterAndSeedsDo) {
  const std::string path = Path("threads");
  WriteOptions options;
  options.threads = 1;
  ASSERT_TRUE(WriteCheckpoint(Layout(), path, options).ok());
  options.threads = 4;
  ASSERT_TRUE(WriteCheckpoint(Layout(), path + "4", options).ok());
  EXPECT_EQ(ReadAll(path), ReadAll(path + "4"));
  options.seed = 1;
  ASSERT_TRUE(WriteCheckpoint(Layout(), path + "s", options).ok());
  EXPECT_NE(ReadAll(path), ReadAll(path + "s"));
}

TEST(CheckpointWriterTest, KnowsAWholeFileFromOthers) {
  const std::string path = Path("whole");
  EXPECT_FALSE(IsWritten(Layout(), path, {}));
  ASSERT_TRUE(WriteCheckpoint(Layout(), path, {}).ok());
  EXPECT_TRUE(IsWritten(Layout(), path, {}));
  WriteOptions other;
  other.seed = 1;
  EXPECT_FALSE(IsWritten(Layout(), path, other));
  FileLayout changed = Layout();
  changed.metadata["config"] = "[]";
  EXPECT_FALSE(IsWritten(changed, path, {}));
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_FALSE(IsWritten(Layout(), path, {}));
}

TEST(CheckpointWriterTest, OtherFilesAreNotOverwrittenAndLeftoversGo) {
  const std::string path = Path("others");
  std::ofstream(path + ".part-1-2") << "half";
  ASSERT_TRUE(WriteCheckpoint(Layout(), path, {}).ok());
  EXPECT_FALSE(fs::exists(path + ".part-1-2"));
  const absl::Status again = WriteCheckpoint(Layout(), path, {});
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(again.message().find(path), absl::string_view::npos);
  EXPECT_EQ(WriteCheckpoint(Layout(), "/no/such/folder/file", {}).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ltx::random_model
