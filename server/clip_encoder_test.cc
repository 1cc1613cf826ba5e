#include "server/clip_encoder.h"

#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::server {
namespace {

constexpr int kWidth = 64;
constexpr int kHeight = 48;
constexpr int64_t kFrameBytes = kWidth * kHeight * 3 / 2;

class ClipEncoderTest : public ::testing::Test {
 protected:
  ClipEncoderTest() : path_(::testing::TempDir() + "/clip.mp4") { std::remove(path_.c_str()); }

  /// Frames that become brighter.
  Tensor Frames(int64_t first, int64_t count) {
    std::vector<uint8_t> bytes;
    for (int64_t i = first; i < first + count; ++i) {
      bytes.insert(bytes.end(), kFrameBytes, static_cast<uint8_t>(40 + 3 * i));
    }
    return *TensorFromBytes(*device_, bytes, {count, kHeight * 3 / 2, kWidth}, MemoryOwner::kMedia);
  }
  HostBytes Part(int64_t first, int64_t count) {
    return *HostBytes::Of(*device_, Frames(first, count));
  }
  static media::Mp4Options Options() {
    media::Mp4Options options;
    options.width = kWidth;
    options.height = kHeight;
    return options;
  }
  std::unique_ptr<ClipEncoder> Start() { return *ClipEncoder::Start(path_, Options()); }
  std::string File() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  int64_t LiveBytes() const { return device_->ledger().Read().total.live_bytes; }

  const std::string path_;
  const std::unique_ptr<cpu::CpuDevice> device_ = cpu::CpuDevice::Create({}).value();
};

TEST_F(ClipEncoderTest, PartsDoNotShowInTheFile) {
  auto encoder = Start();
  encoder->Add(Part(0, 24));
  const auto bytes = encoder->Finish({});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const std::string whole = File();
  EXPECT_EQ(static_cast<int64_t>(whole.size()), *bytes);

  encoder = Start();
  for (const auto& [first, count] : std::vector<std::pair<int, int>>{{0, 1}, {1, 15}, {16, 8}}) {
    encoder->Add(Part(first, count));
    EXPECT_EQ(encoder->WaitFor(first + 1), absl::OkStatus());
  }
  ASSERT_TRUE(encoder->Finish({}).ok());
  EXPECT_TRUE(File() == whole);
}

TEST_F(ClipEncoderTest, EncodedPartsAreReleased) {
  const auto encoder = Start();
  encoder->Add(Part(0, 4));
  encoder->Add(Part(4, 4));
  EXPECT_EQ(LiveBytes(), 8 * kFrameBytes);
  // The first frame of the second part comes after the last of the first.
  EXPECT_EQ(encoder->WaitFor(5), absl::OkStatus());
  EXPECT_LE(LiveBytes(), 4 * kFrameBytes);
}

TEST_F(ClipEncoderTest, AbandonedItLeavesNeitherFileNorFrames) {
  {
    const auto encoder = Start();
    encoder->Add(Part(0, 200));
    EXPECT_EQ(encoder->WaitFor(1), absl::OkStatus());
  }
  struct stat info;
  EXPECT_NE(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(LiveBytes(), 0);
}

TEST_F(ClipEncoderTest, ErrorsAreReported) {
  EXPECT_EQ(ClipEncoder::Start("/no/such/folder/c.mp4", Options()).status().code(),
            absl::StatusCode::kNotFound);
  const auto encoder = Start();
  encoder->Add(Part(0, 1));
  EXPECT_EQ(encoder->WaitFor(2).code(), absl::StatusCode::kInternal);
}

TEST_F(ClipEncoderTest, AFileWithoutFramesIsRefused) {
  EXPECT_EQ(Start()->Finish({}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ltx::server
