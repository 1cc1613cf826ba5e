#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include "proto/ltx/v1/video_service.pb.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"
#include "tests/enhancement/writing_model.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;

/// A server whose text model can write, with a system prompt.
class EnhanceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = MakeFolder();
    const std::string system_prompt = folder_ + "/system_prompt.txt";
    std::ofstream(system_prompt) << "Describe the film.\n";
    auto server =
        ServerProcess::StartModel(WriteWritingModel("served").value(),
                                  {"--prompt-enhancement-system-prompt-file", system_prompt});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() {
    server_->process().Signal(SIGTERM);
    EXPECT_TRUE(server_->process().Wait(absl::Seconds(30)).ok());
    server_.reset();
  }

  static std::string folder_;
  static std::unique_ptr<ServerProcess> server_;
};
std::string EnhanceTest::folder_;
std::unique_ptr<ServerProcess> EnhanceTest::server_;

TEST_F(EnhanceTest, TheWrittenPromptIsReportedAndUsed) {
  v1::GenerateVideoRequest request;
  request.set_prompt("a red circle");
  request.set_recipe("distilled_one_stage");
  request.set_width(96);
  request.set_height(96);
  request.set_num_frames(17);
  request.set_seed(3);
  request.set_enhance_prompt(true);
  const WireStream stream = CallGenerate(server_->address(), request);
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  std::string written;
  int units = 0;
  int left_out = 0;
  v1::GenerationReport report;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.has_admitted()) {
      EXPECT_EQ(event.admitted().phases(0).phase(), v1::PHASE_ENHANCE);
      EXPECT_EQ(event.admitted().phases(0).units(), 512);
      EXPECT_EQ(event.admitted().plan().phases(0).units(), 512);
      EXPECT_EQ(event.admitted().parameters().enhancement_max_tokens(), 512);
    }
    if (event.has_progress() && event.progress().phase() == v1::PHASE_ENHANCE) {
      EXPECT_EQ(event.progress().unit(), ++units);
      left_out = 512 - event.progress().units();
      written = event.progress().enhanced_prompt();
    }
    if (event.has_progress()) {
      EXPECT_LE(event.progress().units_done(), event.progress().units_total());
    }
    if (event.has_finished()) report = event.finished().report();
  }
  EXPECT_NE(written, "");
  EXPECT_GT(left_out, 0);
  EXPECT_EQ(units, 512 - left_out);
  EXPECT_EQ(report.parameters().enhanced_prompt(), written);
  EXPECT_EQ(report.parameters().enhancement_tokens(), units);
  EXPECT_EQ(report.timings(0).phase(), v1::PHASE_ENHANCE);
}

TEST_F(EnhanceTest, TheClientPrintsIt) {
  const ProgramResult result = server_->Client(
      "generate", Join(SmallClipFlags(3), {"--enhance-prompt", "--output", folder_ + "/clip.mp4"}));
  EXPECT_EQ(result.exit.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("prompt: "));
  EXPECT_THAT(result.err, HasSubstr("enhance"));
  const ProgramResult plan = server_->Client("plan", Join(SmallClipFlags(3), {"--enhance-prompt"}));
  EXPECT_EQ(plan.exit.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("enhance           512"));
}

}  // namespace
}  // namespace ltx::testing
