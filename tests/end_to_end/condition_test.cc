#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConditionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::Start({"--condition-max-pixels", "20000"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() { server_.reset(); }

  /// Uploads by the client program; the handle that it prints.
  static std::string Upload(const std::vector<std::string>& arguments) {
    const ProgramResult result = server_->Client("condition", arguments);
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return result.out.substr(0, result.out.find(' '));
  }
  static std::string Write(const std::string& name, const std::string& content) {
    const std::string path = MakeFolder() + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::unique_ptr<ServerProcess> server_;
};
std::unique_ptr<ServerProcess> ConditionTest::server_;

TEST_F(ConditionTest, APromptByItsHandleIsThePrompt) {
  // "--prompt", the prompt, and what is left.
  const std::vector<std::string> flags = SmallClipFlags(3);
  ASSERT_EQ(flags[0], "--prompt");
  const std::string handle = Upload({"--prompt", flags[1]});
  EXPECT_THAT(handle, StartsWith("prompt:"));
  const std::string by_text = MakeFolder() + "/text.mp4";
  const std::string by_handle = MakeFolder() + "/handle.mp4";
  EXPECT_EQ(server_->Client("generate", Join(flags, {"--output", by_text})).exit.code, 0);
  const std::vector<std::string> rest(flags.begin() + 2, flags.end());
  const ProgramResult result =
      server_->Client("generate", Join({"--prompt-handle", handle, "--output", by_handle}, rest));
  EXPECT_EQ(result.exit.code, 0) << result.err;
  EXPECT_EQ(ReadWholeFile(by_text), ReadWholeFile(by_handle));
}

TEST_F(ConditionTest, MaterialIsKnownButNotUsedYet) {
  const std::string clip = MakeFolder() + "/clip.mp4";
  const ProgramResult made =
      server_->Client("generate", Join(SmallClipFlags(1), {"--output", clip}));
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const std::string handle = Upload({clip});
  EXPECT_THAT(handle, StartsWith("video:"));
  EXPECT_EQ(Upload({clip}), handle);

  v1::GenerateVideoRequest request = SmallRequest(1);
  v1::ConditionRef* reference = request.add_conditions();
  reference->set_role(v1::CONDITION_ROLE_REFERENCE);
  reference->set_handle(handle);
  const WireError unused = CallGenerate(server_->address(), request).error;
  EXPECT_EQ(unused.code, absl::StatusCode::kUnimplemented);
  EXPECT_EQ(unused.reason, "UNSUPPORTED_FIELD_FOR_MODE");

  EXPECT_EQ(server_->Client("condition", {"--delete", handle}).exit.code, 0);
  const WireError gone = CallGenerate(server_->address(), request).error;
  EXPECT_EQ(gone.code, absl::StatusCode::kNotFound);
  EXPECT_EQ(gone.reason, "CONDITION_NOT_FOUND");
  EXPECT_EQ(gone.value, handle);
  const ProgramResult again = server_->Client("condition", {"--delete", handle});
  EXPECT_EQ(again.exit.code, 1);
  EXPECT_THAT(again.LastErrorLine(), HasSubstr("CONDITION_NOT_FOUND"));
}

TEST_F(ConditionTest, RefusalsNameValueAndLimit) {
  const ProgramResult text = server_->Client("condition", {Write("a.png", "no picture")});
  EXPECT_EQ(text.exit.code, 1);
  EXPECT_THAT(text.LastErrorLine(), HasSubstr("a.png"));
  EXPECT_THAT(text.LastErrorLine(), HasSubstr("[MEDIA_FORMAT]"));
  const ProgramResult empty = server_->Client("condition", {Write("b.png", "")});
  EXPECT_THAT(empty.LastErrorLine(), HasSubstr("empty"));
  const std::string clip = MakeFolder() + "/large.mp4";
  ASSERT_EQ(
      server_->Client("generate", Join(ClipFlags(160, 128, 17, 1), {"--output", clip})).exit.code,
      0);
  const ProgramResult large = server_->Client("condition", {clip});
  EXPECT_THAT(large.LastErrorLine(), HasSubstr("20480 pixels in a frame; legal are at most 20000"));
  EXPECT_EQ(server_->Client("condition", {}).exit.code, 1);
  EXPECT_EQ(server_->Client("condition", {"/no/such/file"}).exit.code, 1);
}

}  // namespace
}  // namespace ltx::testing
