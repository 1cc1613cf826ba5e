#include "server/partial_result.h"

#include <cstring>
#include <filesystem>

#include "engine/checkpoint/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

TEST(PartialResultTest, IsASafetensorsFile) {
  const std::string path = ::testing::TempDir() + "/job.partial.safetensors";
  const std::vector<NamedValues> tensors = {{"video_latent", {1, 2, 3}, {0, 1, 2, 3, 4, 5}},
                                            {"audio_latent", {1, 1, 2}, {-1, 0.5f}}};
  const auto bytes = WritePartialResult(path, tensors, {{"phase", "stage1"}, {"step", "3"}});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
  const auto file = checkpoint::SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->metadata().at("phase"), "stage1");
  EXPECT_EQ((*file)->metadata().at("step"), "3");
  for (const NamedValues& tensor : tensors) {
    ASSERT_EQ((*file)->entries().count(tensor.name), 1) << tensor.name;
    const checkpoint::SafetensorsFile::Entry& entry = (*file)->entries().at(tensor.name);
    EXPECT_EQ(entry.shape, tensor.shape);
    EXPECT_EQ(entry.dtype, DType::kF32);
    ASSERT_EQ(entry.bytes.size(), tensor.values.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(entry.bytes.data(), tensor.values.data(), entry.bytes.size()), 0);
  }
}

TEST(PartialResultTest, NamesTheFolderThatIsNotThere) {
  const auto bytes = WritePartialResult("/no/such/folder/x", {}, {});
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kNotFound) << bytes.status();
}

}  // namespace
}  // namespace ltx::server
