#include "engine/checkpoint/safetensors.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::HasSubstr;

/// A header and data that the reader has to accept.
constexpr char kGoodHeader[] = R"({"__metadata__":{"format":"pt","config":"{}"},)"
                               R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                               R"("b.c":{"dtype":"U8","shape":[3],"data_offsets":[24,27]},)"
                               R"("d":{"dtype":"BF16","shape":[],"data_offsets":[27,29]},)"
                               R"("e":{"dtype":"I64","shape":[0,4],"data_offsets":[29,29]}})";
const std::string& GoodData() {
  static const std::string* const data = new std::string(29, '\x01');
  return *data;
}

absl::StatusOr<std::shared_ptr<const SafetensorsFile>> OpenBytes(absl::string_view bytes) {
  static const std::string* const path =
      new std::string(MakeTestFolder("safetensors") + "/case.safetensors");
  WriteTestFile(*path, bytes);
  return SafetensorsFile::Open(*path);
}

/// The same through a file in memory: thousands of real files take long on a slow disk.
absl::StatusOr<std::shared_ptr<const SafetensorsFile>> OpenInMemory(absl::string_view bytes) {
  const int file = memfd_create("case", 0);
  EXPECT_EQ(write(file, bytes.data(), bytes.size()), bytes.size());
  auto opened = SafetensorsFile::Open(absl::StrCat("/proc/self/fd/", file));
  close(file);
  return opened;
}

TEST(SafetensorsFileTest, ReadsTensorsAndMetadata) {
  const auto file = OpenBytes(SafetensorsBytes(kGoodHeader, GoodData()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->file_bytes(), 8 + std::strlen(kGoodHeader) + GoodData().size());
  EXPECT_THAT((*file)->metadata(),
              ::testing::ElementsAre(std::pair("config", "{}"), std::pair("format", "pt")));
  ASSERT_EQ((*file)->entries().size(), 4);
  const SafetensorsFile::Entry& a = (*file)->entries().find("a")->second;
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, Shape({2, 3}));
  EXPECT_EQ(a.bytes.size(), 24);
  EXPECT_EQ((*file)->entries().find("d")->second.shape.rank(), 0);
  EXPECT_EQ((*file)->entries().find("e")->second.bytes.size(), 0);
}

TEST(SafetensorsFileTest, ReadsPiecesPastTheMapping) {
  std::string data = GoodData();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i);
  const auto file = OpenInMemory(SafetensorsBytes(kGoodHeader, data));
  ASSERT_TRUE(file.ok()) << file.status();
  const SafetensorsFile::Entry& b = (*file)->entries().find("b.c")->second;
  std::vector<uint8_t> bytes(2);
  ASSERT_TRUE((*file)->Read(b, 1, absl::MakeSpan(bytes)).ok());
  EXPECT_THAT(bytes, ::testing::ElementsAre(25, 26));
  ASSERT_TRUE((*file)->Read(b, 3, {}).ok());
}

TEST(SafetensorsFileTest, HeaderMayEndInSpaces) {
  const auto file = OpenBytes(SafetensorsBytes(absl::StrCat(kGoodHeader, "   \n"), GoodData()));
  EXPECT_TRUE(file.ok()) << file.status();
}

TEST(SafetensorsFileTest, EmptyHeaderObjectIsAFileWithoutTensors) {
  const auto file = OpenBytes(SafetensorsBytes("{}", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->entries().empty());
}

TEST(SafetensorsFileTest, MissingAndUnreadablePathsAreNotFound) {
  const std::string folder = MakeTestFolder("safetensors_paths");
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string(), folder, folder + "/none", pipe,
                                  std::string("/dev/zero"), folder + "/none/below"}) {
    const auto file = SafetensorsFile::Open(path);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound) << path << file.status();
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
  }
}

TEST(SafetensorsFileTest, RefusesBadLengths) {
  std::string huge(16, '\0');
  huge[7] = 0x10;  // 2^60
  std::string capped = SafetensorsBytes(kGoodHeader, GoodData());
  capped[3] = 0x06;  // 0x06000000 and more: above the format's 100 MB
  std::string beyond = SafetensorsBytes(kGoodHeader, "");
  beyond[1] = 0x7f;
  for (const std::string& bytes : {std::string(), std::string(7, '{'), huge, capped, beyond,
                                   std::string(8, '\xff'), SafetensorsBytes("", "")}) {
    const auto file = OpenBytes(bytes);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << bytes.size();
    EXPECT_THAT(std::string(file.status().message()), HasSubstr("case.safetensors"));
  }
}

struct BadHeader {
  std::string header;
  /// What the message has to name.
  std::string names;
};

std::string Entry(absl::string_view dtype, absl::string_view shape, absl::string_view offsets) {
  return absl::StrCat(R"({"t.x":{"dtype":)", dtype, R"(,"shape":)", shape, R"(,"data_offsets":)",
                      offsets, "}}");
}

TEST(SafetensorsFileTest, RefusesBadHeaders) {
  const std::string deep(200000, '[');
  const std::vector<BadHeader> cases = {
      {"[1]", "not an object"},
      {"3", "not an object"},
      {"{", "not JSON"},
      {"{} {}", "not JSON"},
      {std::string("{\"t\xff\":{}}"), "not JSON"},
      {R"({"t.x":3})", "t.x"},
      {R"({"t.x":null})", "t.x"},
      {R"({"t.x":[]})", "t.x"},
      {R"({"t.x":{}})", "dtype is missing"},
      {deep, "header"},
      {absl::StrCat(R"({"t.x":)", deep), "t.x"},
      {absl::StrCat(R"({"t.x":{"shape":)", deep), "t.x"},
      {R"({"t.x":{"dtype":"F32","shape":[1]}})", "data_offsets is missing"},
      {R"({"t.x":{"dtype":"F32","data_offsets":[0,4]}})", "shape is missing"},
      {R"({"t.x":{"shape":[1],"data_offsets":[0,4]}})", "dtype is missing"},
      {R"({"t.x":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "twice"},
      {R"({"t.x":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1}})", "more"},
      {R"({"t.x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("t.x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "t.x"},
      {R"({"__metadata__":{},"__metadata__":{}})", "__metadata__"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", "\"k\""},
      {R"({"__metadata__":{"k":1}})", "\"k\""},
      {R"({"__metadata__":{"k":{}}})", "\"k\""},
      {R"({"__metadata__":[]})", "__metadata__"},
      {R"({"__metadata__":"x"})", "__metadata__"},
      {Entry("\"F31\"", "[1]", "[0,4]"), "F31"},
      {Entry("7", "[1]", "[0,4]"), "dtype"},
      {Entry("\"F32\"", "1", "[0,4]"), "shape"},
      {Entry("\"F32\"", "[-1]", "[0,4]"), "-1"},
      {Entry("\"F32\"", "[1.0]", "[0,4]"), "1.0"},
      {Entry("\"F32\"", "[\"1\"]", "[0,4]"), "shape"},
      {Entry("\"F32\"", "[[1]]", "[0,4]"), "shape"},
      {Entry("\"F32\"", "[1e999]", "[0,4]"), "JSON"},
      {Entry("\"F32\"", "[99999999999999999999]", "[0,4]"), "99999999999999999999"},
      {Entry("\"F32\"", "[18446744073709551615]", "[0,4]"), "t.x"},
      {Entry("\"F32\"", "[4294967296,4294967296]", "[0,4]"), "t.x"},
      {Entry("\"F32\"", "[4611686018427387904]", "[0,0]"), "t.x"},
      {Entry("\"F32\"", "[0,4611686018427387904,4]", "[0,0]"), "t.x"},
      {Entry("\"F32\"", "[1,1,1,1,1,1,1]", "[0,4]"), "6 axes"},
      {Entry("\"F32\"", "[1]", "[4,0]"), "reversed"},
      {Entry("\"F32\"", "[1]", "[0,8]"), "outside"},
      {Entry("\"F32\"", "[1]", "[1152921504606846976,1152921504606846980]"), "outside"},
      {Entry("\"F32\"", "[1]", "[0]"), "data_offsets"},
      {Entry("\"F32\"", "[1]", "[0,4,4]"), "data_offsets"},
      {Entry("\"F32\"", "[1]", "[-4,0]"), "data_offsets"},
      {Entry("\"F32\"", "[1]", "\"0,4\""), "data_offsets"},
      {Entry("\"F32\"", "[2]", "[0,4]"), "needs 8"},
      {Entry("\"U8\"", "[3]", "[0,3]"), "belong to none"},
      {Entry("\"U8\"", "[3]", "[1,4]"), "t.x"},
      {R"({"t.x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
       R"("t.y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "overlaps"},
  };
  for (const BadHeader& bad : cases) {
    const auto file = OpenBytes(SafetensorsBytes(bad.header, "abcd"));
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument)
        << bad.header.substr(0, 200) << "\n"
        << file.status();
    const std::string message(file.status().message());
    EXPECT_THAT(message, HasSubstr(bad.names)) << bad.header.substr(0, 200);
    EXPECT_THAT(message, HasSubstr("case.safetensors"));
    EXPECT_LT(message.size(), 1000);
  }
}

TEST(SafetensorsFileTest, TruncatedFileIsRefusedAtEveryLength) {
  const std::string good = SafetensorsBytes(kGoodHeader, GoodData());
  for (size_t size = 0; size < good.size(); ++size) {
    const auto file = OpenInMemory(absl::string_view(good).substr(0, size));
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

/// Deterministic mutations of a valid file: every outcome is a clean one, and what is accepted can
/// be read.
TEST(SafetensorsFileTest, MutatedFilesNeverCrash) {
  const std::string good = SafetensorsBytes(kGoodHeader, GoodData());
  const std::string snippets[] = {"{",    "}",    "[",    "]",   "\"",   ",",
                                  ":",    "-1",   "0",    "1e9", "null", "{}",
                                  "[[[[", "\\u0", "\xff", "29",  "F64",  "99999999999999999999"};
  std::mt19937 random(20240607);
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good;
    for (size_t edit = 0; edit <= below(3); ++edit) {
      const size_t at = below(bytes.size());
      switch (below(5)) {
        case 0:
          bytes[at] = static_cast<char>(below(256));
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 2:
          bytes.erase(at, 1 + below(8));
          break;
        case 3:
          bytes.insert(at, snippets[below(std::size(snippets))]);
          break;
        default:
          bytes.replace(at, 1, snippets[below(std::size(snippets))]);
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    // Half of the rounds keep the length field right, so that the JSON is reached.
    if (below(2) == 0 && bytes.size() > 8 + GoodData().size()) {
      const size_t header = bytes.size() - 8 - GoodData().size();
      for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header >> (8 * i));
    }
    const auto file = OpenInMemory(bytes);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
      continue;
    }
    ++accepted;
    uint64_t sum = 0;
    for (const auto& [name, entry] : (*file)->entries()) {
      EXPECT_EQ(entry.bytes.size(), entry.shape.num_elements() * SizeOf(entry.dtype));
      for (const uint8_t byte : entry.bytes) sum += byte;
    }
    EXPECT_LE(sum, 255 * bytes.size());
  }
  // Some edits fall into names, metadata and data, and change nothing that matters.
  EXPECT_GT(accepted, 20);
  EXPECT_LT(accepted, 2000);
}

}  // namespace
}  // namespace ltx::checkpoint
