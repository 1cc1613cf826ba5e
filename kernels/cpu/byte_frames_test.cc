#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class ByteFramesTest : public CpuDeviceTest {
 protected:
  struct Packed {
    std::vector<uint8_t> rgb;
    std::vector<uint8_t> i420;
  };
  Packed Pack(const std::vector<float>& values, const Shape& shape) {
    const Tensor frames = *TensorFromFloats(*device_, values, shape);
    const auto bytes = device_->ToByteFrames(frames, MemoryOwner::kMedia);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(bytes->rgb.shape(), shape);
    EXPECT_EQ(bytes->i420.shape(), Shape({shape.dim(0), shape.dim(1) * 3 / 2, shape.dim(2)}));
    return {Bytes(bytes->rgb), Bytes(bytes->i420)};
  }
  std::vector<uint8_t> SolidI420(float r, float g, float b) {
    return Pack({r, g, b, r, g, b, r, g, b, r, g, b}, {1, 2, 2, 3}).i420;
  }
};

TEST_F(ByteFramesTest, RgbIsTruncated) {
  const Packed packed =
      Pack({0.0f, 0.9999f, 1.0f, 2.0f, -1.0f, std::nanf(""), 0.5f, 0, 0, 0, 0, 0}, {1, 2, 2, 3});
  EXPECT_THAT(packed.rgb, ElementsAre(0, 254, 255, 255, 0, 0, 127, 0, 0, 0, 0, 0));
}

TEST_F(ByteFramesTest, KnownColours) {
  EXPECT_THAT(SolidI420(0, 0, 0), ElementsAre(16, 16, 16, 16, 128, 128));
  EXPECT_THAT(SolidI420(1, 1, 1), ElementsAre(235, 235, 235, 235, 128, 128));
  // 0.2126 * 219 + 16 = 62.56; -0.1146 * 224 + 128 = 102.33; 0.5 * 224 + 128 = 240.
  EXPECT_THAT(SolidI420(1, 0, 0), ElementsAre(62, 62, 62, 62, 102, 240));
}

TEST_F(ByteFramesTest, NanAndOutOfRangeAreDefined) {
  EXPECT_THAT(SolidI420(std::nanf(""), 0, 0), Each(0));
  EXPECT_EQ(SolidI420(9, 9, 9)[0], 255);
}

TEST_F(ByteFramesTest, PlanesOfEachFrameLieWhereEncodersExpectThem) {
  // Two frames of 4 x 2 pixels, black but for one: red, of the second frame's right half.
  std::vector<float> values(2 * 2 * 4 * 3, 0.0f);
  values[(1 * 8 + 6) * 3] = 1.0f;
  const Packed packed = Pack(values, {2, 2, 4, 3});
  std::vector<uint8_t> rgb(values.size(), 0);
  rgb[(1 * 8 + 6) * 3] = 255;
  EXPECT_EQ(packed.rgb, rgb);
  // A quarter of red: -0.1146 / 4 * 224 + 128 = 121.58; 0.5 / 4 * 224 + 128 = 156.
  EXPECT_THAT(packed.i420, ElementsAre(16, 16, 16, 16, 16, 16, 16, 16, 128, 128, 128, 128,  //
                                       16, 16, 16, 16, 16, 16, 62, 16, 128, 121, 128, 156));
}

TEST_F(ByteFramesTest, RefusesWhatIsNoFrame) {
  const auto refused = [&](const Shape& shape, DType dtype) {
    const Tensor frames = *device_->Allocate(shape, dtype, MemoryOwner::kActivations);
    return device_->ToByteFrames(frames, MemoryOwner::kMedia).status().code();
  };
  EXPECT_EQ(refused({1, 3, 2, 3}, DType::kF32), absl::StatusCode::kInternal);
  EXPECT_EQ(refused({1, 2, 3, 3}, DType::kF32), absl::StatusCode::kInternal);
  EXPECT_EQ(refused({1, 2, 2, 4}, DType::kF32), absl::StatusCode::kInternal);
  EXPECT_EQ(refused({2, 2, 3}, DType::kF32), absl::StatusCode::kInternal);
  EXPECT_EQ(refused({1, 2, 2, 3}, DType::kBF16), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::cpu
