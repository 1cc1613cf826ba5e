#include "engine/checkpoint/element_decode.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;

template <typename T>
SafetensorsFile::Entry EntryOf(DType dtype, const std::vector<T>& values, std::string* storage) {
  // One byte in front: elements at an odd address.
  storage->assign(1, 'x');
  storage->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return {dtype, Shape({static_cast<int64_t>(values.size())}),
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(storage->data()) + 1,
                              storage->size() - 1)};
}

TEST(ElementDecodeTest, HalfPrecision) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0xc000), -2.0f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0x0400), std::ldexp(1.0f, -14));
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
  EXPECT_EQ(HalfToFloat(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
}

TEST(ElementDecodeTest, EightBitFloats) {
  EXPECT_EQ(F8E4M3ToFloat(0x38), 1.0f);
  EXPECT_EQ(F8E4M3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(F8E4M3ToFloat(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(F8E4M3ToFloat(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(F8E4M3ToFloat(0xb8), -1.0f);
  EXPECT_TRUE(std::isnan(F8E4M3ToFloat(0x7f)));
  EXPECT_TRUE(std::isnan(F8E4M3ToFloat(0xff)));
  EXPECT_EQ(F8E5M2ToFloat(0x3c), 1.0f);
  EXPECT_EQ(F8E5M2ToFloat(0x7b), 57344.0f);
  EXPECT_TRUE(std::isinf(F8E5M2ToFloat(0x7c)));
}

TEST(ElementDecodeTest, EveryDTypeAtAnOddAddress) {
  std::string storage;
  EXPECT_THAT(DecodeFloats(EntryOf<float>(DType::kF32, {1.5f, -2.0f}, &storage)),
              ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(DecodeDoubles(EntryOf<double>(DType::kF64, {1e300}, &storage)), ElementsAre(1e300));
  EXPECT_THAT(DecodeFloats(EntryOf<BFloat16>(DType::kBF16, {BFloat16(3.0f)}, &storage)),
              ElementsAre(3.0f));
  EXPECT_THAT(DecodeFloats(EntryOf<uint16_t>(DType::kF16, {0x3800}, &storage)), ElementsAre(0.5f));
  EXPECT_THAT(DecodeFloats(EntryOf<uint8_t>(DType::kF8E4M3, {0x40}, &storage)), ElementsAre(2.0f));
  EXPECT_THAT(DecodeFloats(EntryOf<uint8_t>(DType::kU8, {200}, &storage)), ElementsAre(200.0f));
  EXPECT_THAT(DecodeFloats(EntryOf<int8_t>(DType::kI8, {-5}, &storage)), ElementsAre(-5.0f));
  EXPECT_THAT(*DecodeInts(EntryOf<int16_t>(DType::kI16, {-300}, &storage)), ElementsAre(-300));
  EXPECT_THAT(*DecodeInts(EntryOf<int32_t>(DType::kI32, {1 << 30}, &storage)),
              ElementsAre(1 << 30));
  EXPECT_THAT(*DecodeInts(EntryOf<int64_t>(DType::kI64, {int64_t{1} << 60}, &storage)),
              ElementsAre(int64_t{1} << 60));
  EXPECT_THAT(*DecodeInts(EntryOf<uint8_t>(DType::kBool, {0, 1, 7}, &storage)),
              ElementsAre(0, 1, 1));
}

TEST(ElementDecodeTest, FloatsAreNoInts) {
  std::string storage;
  EXPECT_EQ(DecodeInts(EntryOf<float>(DType::kF32, {1.0f}, &storage)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ltx::checkpoint
