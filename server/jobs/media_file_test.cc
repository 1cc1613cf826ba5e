#include "server/jobs/media_file.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "engine/media/sha256.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

TEST(MediaFileTest, ReadsFromAnyPlaceEvenWithoutItsName) {
  const std::string path = ::testing::TempDir() + "/media_file";
  std::ofstream(path) << "hello world";
  const auto file = MediaFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(*(*file)->Read(0, 5), "hello");
  EXPECT_EQ(*(*file)->Read(6, 100), "world");
  EXPECT_EQ(*(*file)->Read(11, 100), "");
  const auto info = (*file)->Measure("video/mp4");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->mime_type, "video/mp4");
  EXPECT_EQ(info->total_bytes, 11);
  EXPECT_EQ(info->sha256, media::Sha256Of("hello world"));
}

TEST(MediaFileTest, NamesAMissingFile) {
  EXPECT_EQ(MediaFile::Open("/no/such").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ltx::server
