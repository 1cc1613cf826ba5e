#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class PreviewTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::Start();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() { server_.reset(); }
  static std::unique_ptr<ServerProcess> server_;
};
std::unique_ptr<ServerProcess> PreviewTest::server_;

TEST_F(PreviewTest, ComeAfterTheStepsAskedFor) {
  v1::GenerateVideoRequest request = SmallRequest(1);
  const WireStream without = CallGenerate(server_->address(), request);
  request.set_preview_every_steps(3);
  const WireStream stream = CallGenerate(server_->address(), request);
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  std::vector<std::string> steps;
  const v1::GenerateVideoEvent* before = nullptr;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.has_preview()) {
      const v1::Preview& preview = event.preview();
      steps.push_back(std::to_string(preview.phase()) + "/" + std::to_string(preview.unit()));
      const int size = preview.phase() == v1::PHASE_STAGE_2 ? 4 : 2;
      EXPECT_EQ(preview.width(), size);
      EXPECT_EQ(preview.height(), size);
      EXPECT_EQ(preview.latent_frame(), 1);
      EXPECT_THAT(preview.png(), StartsWith("\x89PNG"));
      ASSERT_NE(before, nullptr);
      EXPECT_EQ(before->progress().unit(), preview.unit());
    }
    before = &event;
  }
  // Eight steps at half size and three at full size.
  EXPECT_THAT(steps, ElementsAre("2/3", "2/6", "2/8", "4/3"));
  // Looking does not change what is seen.
  const auto digest = [](const WireStream& from) {
    for (const v1::GenerateVideoEvent& event : from.events) {
      if (event.has_media_header()) return event.media_header().sha256();
    }
    return std::string();
  };
  EXPECT_NE(digest(stream), "");
  EXPECT_EQ(digest(stream), digest(without));
  for (const v1::GenerateVideoEvent& event : without.events) EXPECT_FALSE(event.has_preview());

  request.set_preview_every_steps(-1);
  EXPECT_EQ(CallGenerate(server_->address(), request).error.field, "preview_every_steps");
}

TEST_F(PreviewTest, AreNumberedByStepsAlsoWhereAStepTakesSeveralForwards) {
  v1::GenerateVideoRequest request = SmallRequest(1);
  request.set_recipe("one_stage");
  request.set_num_inference_steps(4);
  request.set_guidance_batching(v1::GUIDANCE_BATCHING_SEQUENTIAL);
  request.set_preview_every_steps(2);
  const WireStream stream = CallGenerate(server_->address(), request);
  ASSERT_EQ(stream.error.code, absl::StatusCode::kOk) << stream.error.message;
  std::vector<int> steps;
  for (const v1::GenerateVideoEvent& event : stream.events) {
    if (event.has_preview()) steps.push_back(event.preview().unit());
  }
  EXPECT_THAT(steps, ElementsAre(2, 4));
}

TEST_F(PreviewTest, TheClientWritesThem) {
  const std::string folder = MakeFolder();
  const ProgramResult result = server_->Client(
      "generate", Join(SmallClipFlags(1), {"--output", folder + "/clip.mp4", "--preview-dir",
                                           folder, "--preview-every", "4"}));
  EXPECT_EQ(result.exit.code, 0) << result.err;
  EXPECT_THAT(ListFolder(folder),
              ElementsAre("clip.mp4", "stage1-step04.png", "stage1-step08.png"));
}

}  // namespace
}  // namespace ltx::testing
