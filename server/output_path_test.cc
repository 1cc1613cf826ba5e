#include "server/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "engine/pipeline/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

class ResolveOutputPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = ::testing::TempDir() + "/output_path_test";
    root_ = base_ + "/root";
    mkdir(base_.c_str(), 0755);
    mkdir(root_.c_str(), 0755);
    mkdir((root_ + "/inner").c_str(), 0755);
    mkdir((base_ + "/rootless").c_str(), 0755);
    unlink((root_ + "/escape").c_str());
    ASSERT_EQ(symlink(base_.c_str(), (root_ + "/escape").c_str()), 0);
  }
  absl::StatusOr<std::string> Resolve(const std::string& path, const std::string& ending = ".mp4") {
    return ResolveOutputPath(path, ending, {root_});
  }
  std::string base_, root_;
};

TEST_F(ResolveOutputPathTest, AcceptsPathsBelowARoot) {
  char real[4096];
  ASSERT_NE(realpath(root_.c_str(), real), nullptr);
  EXPECT_EQ(*Resolve(root_ + "/a.mp4"), std::string(real) + "/a.mp4");
  EXPECT_EQ(*Resolve(root_ + "/inner/../inner/b.mp4"), std::string(real) + "/inner/b.mp4");
  EXPECT_EQ(*Resolve(root_ + "/one.png", ".png"), std::string(real) + "/one.png");
}

TEST_F(ResolveOutputPathTest, RefusesWhatLeadsOutside) {
  for (const std::string& path : {base_ + "/a.mp4", root_ + "/../a.mp4", root_ + "/escape/a.mp4",
                                  base_ + "/rootless/a.mp4", std::string("/etc/a.mp4")}) {
    const auto resolved = Resolve(path);
    EXPECT_EQ(resolved.status().code(), absl::StatusCode::kPermissionDenied) << path;
    EXPECT_EQ(pipeline::GetErrorDetail(resolved.status())->field, "output_path");
  }
  EXPECT_EQ(ResolveOutputPath(root_ + "/a.mp4", ".mp4", {}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(ResolveOutputPathTest, RefusesWhatIsNoFileOfTheKind) {
  for (const std::string& path :
       {root_ + "/a.avi", root_ + "/a.png", root_ + "/.mp4", std::string("a.mp4"),
        root_ + "/missing/a.mp4", std::string(".mp4"), root_ + std::string("/a\0.mp4", 7)}) {
    EXPECT_EQ(Resolve(path).status().code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(Resolve(root_ + "/a.mp4", ".png").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::server
