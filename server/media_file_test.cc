#include "server/media_file.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

TEST(MediaFileTest, IsInvisibleAndReadsFromFrontToBack) {
  const std::string path = ::testing::TempDir() + "/media_file";
  std::ofstream(path) << "hello world";
  const auto file = MediaFile::TakeOver(path, "video/mp4");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_EQ((*file)->total_bytes(), 11);
  // SHA-256 of "hello world", from the published test value.
  EXPECT_EQ((*file)->sha256().substr(0, 4), "\xb9\x4d\x27\xb9");
  EXPECT_EQ(*(*file)->Read(6), "hello ");
  EXPECT_EQ(*(*file)->Read(100), "world");
  EXPECT_EQ(*(*file)->Read(100), "");
}

TEST(MediaFileTest, NamesAMissingFile) {
  EXPECT_EQ(MediaFile::TakeOver("/no/such", "x").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ltx::server
