#include "engine/media/image_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/media/png_writer.h"
#include "engine/pipeline/error_details.h"

namespace ltx::media {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string Big32(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string Chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return Big32(static_cast<uint32_t>(data.size())) + body +
         Big32(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                           static_cast<uInt>(body.size()))));
}

std::string Deflated(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
           data.size());
  out.resize(size);
  return out;
}

constexpr size_t kHeaderEnd = 8 + 12 + 13;

/// A PNG of two red and green pixels.
std::string TwoPixels() {
  const std::string path = ::testing::TempDir() + "/two.png";
  EXPECT_TRUE(WritePng(path, {255, 0, 0, 0, 255, 0}, 2, 1).ok());
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::string WithChunk(const std::string& chunk) {
  std::string png = TwoPixels();
  return png.insert(kHeaderEnd, chunk);
}

std::string Reason(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

TEST(DecodeImageTest, ReadsPixels) {
  const auto image = DecodeImage(Bytes(TwoPixels()), "two.png");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->width, 2);
  EXPECT_EQ(image->height, 1);
  EXPECT_EQ(image->format, "png");
  EXPECT_THAT(image->rgb, ElementsAre(255, 0, 0, 0, 255, 0));
}

TEST(DecodeImageTest, OrientationOfExifAndXmp) {
  // Little-endian TIFF with one entry: orientation, a short.
  const auto exif = [](char value) {
    return std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + value +
           std::string("\0\0\0", 3);
  };
  const auto turned = DecodeImage(Bytes(WithChunk(Chunk("eXIf", exif(6)))), "x");
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_EQ(turned->height, 2);
  EXPECT_THAT(turned->rgb, ElementsAre(255, 0, 0, 0, 255, 0));
  const auto half = DecodeImage(Bytes(WithChunk(Chunk("eXIf", exif(3)))), "x");
  EXPECT_THAT(half->rgb, ElementsAre(0, 255, 0, 255, 0, 0));
  const auto mirrored = DecodeImage(Bytes(WithChunk(Chunk("eXIf", exif(2)))), "x");
  EXPECT_THAT(mirrored->rgb, ElementsAre(255, 0, 0, 0, 255, 0));
  const std::string xmp =
      std::string("XML:com.adobe.xmp\0\0\0\0\0", 22) + "<x tiff:Orientation=\"8\"/>";
  const auto from_xmp = DecodeImage(Bytes(WithChunk(Chunk("iTXt", xmp))), "x");
  EXPECT_THAT(from_xmp->rgb, ElementsAre(0, 255, 0, 255, 0, 0));
  EXPECT_EQ(from_xmp->height, 2);
}

TEST(DecodeImageTest, RefusesWhatIsNoPicture) {
  for (const std::string& file :
       {std::string(), std::string("x"), std::string(100, '\0'), std::string("GIF89a"),
        std::string("\x89PNG\r\n\x1A\n"), std::string("\xFF\xD8\xFF\xE0"), std::string("BM"),
        std::string("RIFF\xFF\xFF\xFF\xFFWEBP"), std::string("BM\0\0\0\0\0\0\0\0\0\0", 12)}) {
    const absl::Status status = DecodeImage(Bytes(file), "upload").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << file;
    EXPECT_EQ(Reason(status), "MEDIA_FORMAT") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("upload"));
  }
}

TEST(DecodeImageTest, EveryCutIsRefused) {
  const std::string png = TwoPixels();
  for (size_t size = 0; size < png.size(); ++size) {
    EXPECT_EQ(Reason(DecodeImage(Bytes(png.substr(0, size)), "cut").status()), "MEDIA_FORMAT")
        << size;
  }
}

TEST(DecodeImageTest, NoChangedByteCrashes) {
  const std::string png = TwoPixels();
  for (size_t at = 0; at < png.size(); ++at) {
    std::string changed = png;
    changed[at] = static_cast<char>(changed[at] ^ 0x81);
    DecodeImage(Bytes(changed), "changed").IgnoreError();
  }
}

TEST(DecodeImageTest, HugeSizesAreRefusedByTheirHeader) {
  std::string png = TwoPixels();
  // 65535 x 65535 pixels, with the checksum that belongs to it.
  const std::string header = Big32(65535) + Big32(65535) + std::string("\x08\x02\0\0\0", 5);
  png.replace(8, 25, Chunk("IHDR", header));
  const absl::Status status = DecodeImage(Bytes(png), "bomb.png").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reason(status), "MEDIA_LIMIT");
  EXPECT_THAT(std::string(status.message()), HasSubstr("4294836225 pixels"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 16777216 pixels"));

  MediaLimits limits;
  limits.max_pixels = 1;
  EXPECT_EQ(Reason(DecodeImage(Bytes(TwoPixels()), "x", limits).status()), "MEDIA_LIMIT");
  limits.max_pixels = 2;
  EXPECT_TRUE(DecodeImage(Bytes(TwoPixels()), "x", limits).ok());
}

TEST(DecodeImageTest, ProfilesThatInflateBeyondReasonAreDropped) {
  const std::string bomb = Deflated(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 100000);
  const auto image =
      DecodeImage(Bytes(WithChunk(Chunk("iCCP", std::string("name\0\0", 6) + bomb))), "x");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->rgb, ElementsAre(255, 0, 0, 0, 255, 0));
}

TEST(DecodeImageTest, ABrokenProfileIsAWarning) {
  const auto image = DecodeImage(
      Bytes(WithChunk(Chunk("iCCP", std::string("name\0\0", 6) + Deflated("no profile")))), "x");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->warnings, ElementsAre(HasSubstr("ICC profile")));
}

}  // namespace
}  // namespace ltx::media
