#include "server/jobs/artifact_store.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/pipeline/error_details.h"
#include "gtest/gtest.h"
#include "server/reasons.h"

namespace ltx::server {
namespace {

constexpr char kMp4[] = "video/mp4";

class ArtifactStoreTest : public ::testing::Test {
 protected:
  ArtifactStoreTest() {
    std::string pattern = ::testing::TempDir() + "/artifacts-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ArtifactStore::Options Options(int64_t quota, bool keep = true) const {
    return {folder_, quota, keep};
  }
  static void Write(const ArtifactStore& store, const std::string& id, int bytes) {
    std::ofstream(store.PathFor(id, kMp4)) << std::string(bytes, id[0]);
  }
  static absl::StatusOr<MediaInfo> Add(ArtifactStore* store, const std::string& id, int bytes,
                                       bool over = true) {
    Write(*store, id, bytes);
    absl::StatusOr<MediaInfo> info = store->Add(id, kMp4);
    if (over) store->Unpin(id);
    return info;
  }
  int Files() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_),
                                          std::filesystem::directory_iterator()));
  }
  static std::string ReasonOf(const absl::Status& status) {
    const auto detail = pipeline::GetErrorDetail(status);
    return detail.has_value() ? detail->reason : "";
  }

  std::string folder_;
};

TEST_F(ArtifactStoreTest, TheOldestMakeRoom) {
  ArtifactStore store(Options(100));
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Add(&store, id, 33).ok());
  EXPECT_EQ(store.bytes(), 99);
  const auto reader = store.Open("a");
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(Add(&store, "d", 40).ok());
  EXPECT_FALSE(store.Has("a"));
  EXPECT_FALSE(store.Has("b"));
  EXPECT_TRUE(store.Has("c"));
  EXPECT_EQ(store.bytes(), 73);
  EXPECT_EQ(Files(), 2);
  EXPECT_EQ(ReasonOf(store.Open("a").status()), kReasonArtifactGone);
  // Who had it open reads on.
  EXPECT_EQ(*(*reader)->Read(0, 100), std::string(33, 'a'));
}

TEST_F(ArtifactStoreTest, ClipsOfUnfinishedJobsStay) {
  ArtifactStore store(Options(100));
  ASSERT_TRUE(Add(&store, "a", 60, /*over=*/false).ok());
  const auto refused = Add(&store, "b", 60);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused.status()), kReasonArtifactQuota);
  EXPECT_TRUE(store.Has("a"));
  EXPECT_EQ(Files(), 1);
  store.Unpin("a");
  EXPECT_TRUE(Add(&store, "b", 60).ok());
  EXPECT_FALSE(store.Has("a"));
}

TEST_F(ArtifactStoreTest, AClipAboveTheQuotaIsRefused) {
  ArtifactStore store(Options(100));
  EXPECT_EQ(Add(&store, "a", 101).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Files(), 0);
  EXPECT_EQ(store.bytes(), 0);
}

TEST_F(ArtifactStoreTest, NamelessClipsLeaveNothing) {
  {
    ArtifactStore store(Options(100, /*keep=*/false));
    ASSERT_TRUE(Add(&store, "a", 10).ok());
    EXPECT_EQ(Files(), 0);
    EXPECT_EQ(*(*store.Open("a"))->Read(0, 100), std::string(10, 'a'));
    store.Remove("a");
    EXPECT_FALSE(store.Has("a"));
    EXPECT_EQ(store.bytes(), 0);
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(ArtifactStoreTest, AfterAStartOnlyWhatRecordsTellOfIsThere) {
  {
    ArtifactStore store(Options(100));
    for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Add(&store, id, 10).ok());
    Write(store, "unfinished", 10);
    std::ofstream(folder_ + "/d.mp4.part-1-2") << "half";
  }
  ArtifactStore store(Options(100));
  EXPECT_TRUE(store.Restore("a", {kMp4, 10, ""}));
  EXPECT_FALSE(store.Restore("b", {kMp4, 11, ""}));
  EXPECT_FALSE(store.Restore("nobody", {kMp4, 10, ""}));
  store.RemoveStrangers();
  EXPECT_EQ(Files(), 1);
  EXPECT_EQ(store.bytes(), 10);
  EXPECT_TRUE(store.Open("a").ok());
}

}  // namespace
}  // namespace ltx::server
