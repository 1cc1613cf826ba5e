#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "server/auth/token_file.h"
#include "server/auth/token_table.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTokens[] =
    "# who may call\n"
    "\n"
    "studio   0123456789abcdef\n"
    "archive\tfedcba9876543210\n"
    "studio the-second-of-studio\n";

TEST(TokenTableTest, KnowsWhoseTokenItIs) {
  const auto table = TokenTable::Parse(kTokens);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 3);
  EXPECT_EQ(table->Find("0123456789abcdef"), "studio");
  EXPECT_EQ(table->Find("fedcba9876543210"), "archive");
  EXPECT_EQ(table->Find("the-second-of-studio"), "studio");
  for (const char* unknown : {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"}) {
    EXPECT_EQ(table->Find(unknown), std::nullopt) << unknown;
  }
}

TEST(TokenTableTest, SaysWhichLineIsAtFaultAndNeverTheToken) {
  const auto message = [](const std::string& text) {
    const absl::Status status = TokenTable::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(""), HasSubstr("no token"));
  EXPECT_THAT(message("# a\nstudio"), HasSubstr("line 2: not a tenant and a token"));
  EXPECT_THAT(message("a/b 0123456789abcdef"), HasSubstr("tenant \"a/b\""));
  const std::string shorter = message("studio secret");
  EXPECT_THAT(shorter, HasSubstr("6 characters; it needs 16"));
  EXPECT_THAT(shorter, Not(HasSubstr("secret")));
  EXPECT_THAT(message("a 0123456789abcdef\nb 0123456789abcdef"), HasSubstr("line 2: the token"));
  EXPECT_THAT(message("a 0123456789abcde\xC3\xA9"), HasSubstr("printable"));
}

class TokenFileTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) const {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), 0600);
  }
  const std::string path_ = ::testing::TempDir() + "/tokens";
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(TokenFileTest, ChangesCountWithoutARestart) {
  Write("a 0123456789abcdef\n");
  auto file = TokenFile::Open(path_, [this] { return now_; });
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Read()->Find("0123456789abcdef"), "a");
  Write("b 0123456789abcdef\nc another-token-of-c\n");
  EXPECT_EQ((*file)->Read()->Find("0123456789abcdef"), "a");
  now_ += absl::Seconds(2);
  EXPECT_EQ((*file)->Read()->Find("0123456789abcdef"), "b");
  EXPECT_EQ((*file)->Read()->size(), 2);
}

TEST_F(TokenFileTest, ABrokenFileLeavesTheTokensAsTheyWere) {
  Write("a 0123456789abcdef\n");
  auto file = TokenFile::Open(path_, [this] { return now_; });
  ASSERT_TRUE(file.ok()) << file.status();
  Write("nonsense");
  now_ += absl::Seconds(2);
  EXPECT_EQ((*file)->Read()->Find("0123456789abcdef"), "a");
  remove(path_.c_str());
  now_ += absl::Seconds(2);
  EXPECT_EQ((*file)->Read()->Find("0123456789abcdef"), "a");
  Write("b 0123456789abcdef\n");
  now_ += absl::Seconds(2);
  EXPECT_EQ((*file)->Read()->Find("0123456789abcdef"), "b");
}

TEST_F(TokenFileTest, ErrorsNameThePath) {
  EXPECT_EQ(TokenFile::Open("/no/such/file").status().code(), absl::StatusCode::kNotFound);
  Write("x");
  const absl::Status status = TokenFile::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

}  // namespace
}  // namespace ltx::server
