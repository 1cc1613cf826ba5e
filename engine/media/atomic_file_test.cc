#include "engine/media/atomic_file.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

const uint8_t kBytes[] = {'a', 'b', 'c'};

TEST(AtomicFileTest, AppearsOnlyOnCommit) {
  const std::string path = ::testing::TempDir() + "/atomic_commit";
  unlink(path.c_str());
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write(kBytes).ok());
  EXPECT_FALSE(Exists(path));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(path), "abc");
  EXPECT_FALSE(Exists(file->temporary_path()));
  EXPECT_EQ(file->Commit().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(AtomicFileTest, DroppedBeforeCommitKeepsTheOldFile) {
  const std::string path = ::testing::TempDir() + "/atomic_drop";
  std::ofstream(path) << "old";
  std::string temporary;
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok());
    temporary = file->temporary_path();
    ASSERT_TRUE(file->Write(kBytes).ok());
    const AtomicFile moved = *std::move(file);
    EXPECT_TRUE(Exists(temporary));
  }
  EXPECT_FALSE(Exists(temporary));
  EXPECT_EQ(Content(path), "old");
}

TEST(AtomicFileTest, RefusesByName) {
  EXPECT_EQ(AtomicFile::Create("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AtomicFile::Create("/tmp").status().code(), absl::StatusCode::kInvalidArgument);
  const auto missing = AtomicFile::Create("/no/such/folder/clip.mp4").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr("/no/such/folder/clip.mp4"));
}

TEST(AtomicFileTest, AFullDiskIsResourceExhausted) {
  // /dev/full answers every write with ENOSPC; reach it through the descriptor of a real file.
  auto file = AtomicFile::Create(::testing::TempDir() + "/atomic_full");
  ASSERT_TRUE(file.ok());
  FILE* full = fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  dup2(fileno(full), file->descriptor());
  fclose(full);
  EXPECT_EQ(file->Write(kBytes).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ltx::media
