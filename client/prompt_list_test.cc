#include "client/prompt_list.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::client {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<std::vector<std::string>> Read(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/prompts.txt";
  std::ofstream(path, std::ios::binary) << text;
  return ReadPromptList(path);
}

TEST(ReadPromptListTest, OneALine) {
  const auto prompts =
      Read("a red circle\r\n\n  \t\na blue square, a low hum \nlast, without an end");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_THAT(*prompts,
              ElementsAre("a red circle", "a blue square, a low hum", "last, without an end"));
}

TEST(ReadPromptListTest, FilesWithoutAPrompt) {
  EXPECT_EQ(Read("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("\n\r\n").status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* path : {"/nonexistent/prompts.txt", "/"}) {
    EXPECT_EQ(ReadPromptList(path).status().code(), absl::StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace ltx::client
