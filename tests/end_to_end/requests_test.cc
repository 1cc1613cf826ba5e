#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What is refused, and the services beside the main one.
class RequestsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = MakeFolder();
    auto server = ServerProcess::Start({"--output-root", root_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() { server_.reset(); }
  static const std::string& address() { return server_->address(); }

  static std::unique_ptr<ServerProcess> server_;
  static std::string root_;
};
std::unique_ptr<ServerProcess> RequestsTest::server_;
std::string RequestsTest::root_;

struct BadRequest {
  std::string field;
  std::string reason;
  /// As the error tells them.
  std::string value;
  std::string legal;
  std::function<void(v1::GenerateVideoRequest*)> spoil;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  /// Further words of the message.
  std::string words = {};
};

std::vector<BadRequest> BadNumbers() {
  using R = v1::GenerateVideoRequest;
  const auto frames = [](int32_t n) { return [n](R* r) { r->set_num_frames(n); }; };
  const auto rate = [](double n) { return [n](R* r) { r->set_frame_rate(n); }; };
  const auto size = [](const char* recipe, int32_t width, int32_t height) {
    return [=](R* r) {
      r->set_recipe(recipe);
      r->set_width(width);
      r->set_height(height);
    };
  };
  const char* const two = "distilled";
  const char* const one = "distilled_one_stage";
  const std::string rates = "a number from 1 to 240 frames per second";
  const std::string two_sizes = "multiples of 64 from 128 to 256";
  const std::string one_sizes = "multiples of 32 from 96 to 256";
  const absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  return {
      {"num_frames", "FRAME_LIMIT", "72", "49", frames(72), code, "8k + 1, here 65 or 73"},
      {"num_frames", "FRAME_LIMIT", "117", "49", frames(117), code, "8k + 1, here 113 or 121"},
      {"num_frames", "FRAME_LIMIT", "120", "49", frames(120), code, "8k + 1, here 113 or 121"},
      {"num_frames", "FRAME_LIMIT", "121", "49", frames(121), code, "17 to 49 frames"},
      {"num_frames", "FRAME_GRID", "20", "17 or 25", frames(20), code, "8k + 1"},
      {"num_frames", "FRAME_GRID", "48", "41 or 49", frames(48)},
      {"num_frames", "FRAME_LIMIT", "0", "17", frames(0)},
      {"num_frames", "FRAME_LIMIT", "-25", "17", frames(-25)},
      {"num_frames", "FRAME_LIMIT", "1000000000", "49", frames(1000000000)},
      {"num_frames", "FRAME_LIMIT", "2147483647", "49",
       frames(std::numeric_limits<int32_t>::max())},
      {"frame_rate", "FRAME_RATE", "nan", rates, rate(std::numeric_limits<double>::quiet_NaN())},
      {"frame_rate", "FRAME_RATE", "inf", rates, rate(std::numeric_limits<double>::infinity())},
      {"frame_rate", "FRAME_RATE", "0", rates, rate(0.0)},
      {"frame_rate", "FRAME_RATE", "-24", rates, rate(-24.0)},
      {"frame_rate", "FRAME_RATE", "1000", rates, rate(1000.0)},
      {"height", "SIZE_GRID", "100", "128", size(two, 100, 100)},
      {"height", "SIZE_GRID", "100", "96 or 128", size(one, 100, 100)},
      {"width", "SIZE_GRID", "160", "128 or 192", size(two, 160, 128), code, "multiples of 64"},
      {"width", "SIZE_GRID", "129", "128 or 160", size(one, 129, 128), code, "multiples of 32"},
      {"width", "SIZE_LIMIT", "0", two_sizes, size(two, 0, 128)},
      {"height", "SIZE_LIMIT", "-64", one_sizes, size(one, 128, -64)},
      {"width", "SIZE_LIMIT", "320", two_sizes, size(two, 320, 128)},
      {"width", "SIZE_LIMIT", "2147483647", one_sizes,
       size(one, std::numeric_limits<int32_t>::max(), 128)},
  };
}

std::vector<BadRequest> BadWords() {
  using R = v1::GenerateVideoRequest;
  const absl::StatusCode denied = absl::StatusCode::kPermissionDenied;
  return {
      {"prompt", "PROMPT_LENGTH", "of 2097152 bytes", "at most 16384 bytes of UTF-8",
       [](R* r) { r->set_prompt(std::string(2 << 20, 'a')); }},
      {"recipe", "UNKNOWN_VALUE", "fast", "distilled, distilled_one_stage",
       [](R* r) { r->set_recipe("fast"); }},
      {"noise_generator", "UNKNOWN_VALUE", "7", "torch_cpu or torch_cuda",
       [](R* r) { r->set_noise_generator(static_cast<v1::NoiseGenerator>(7)); }},
      {"noise_dtype", "UNKNOWN_VALUE", "9", "float32 or bfloat16",
       [](R* r) { r->set_noise_dtype(static_cast<v1::NoiseDtype>(9)); }},
      {"output_path", "OUTPUT_PATH", "/etc/clip.mp4", "a path below ",
       [](R* r) { r->set_output_path("/etc/clip.mp4"); }, denied},
      {"output_path", "OUTPUT_PATH", "clip.mp4", "a path below ",
       [](R* r) { r->set_output_path("clip.mp4"); }},
  };
}

/// Every field that recipes without guidance cannot honour, at a harmless value.
std::vector<BadRequest> UnsupportedFields() {
  using R = v1::GenerateVideoRequest;
  std::vector<BadRequest> cases;
  const auto add = [&cases](const std::string& field, const std::string& value,
                            std::function<void(R*)> spoil) {
    cases.push_back({field, "UNSUPPORTED_FIELD_FOR_MODE", value, "unset", std::move(spoil)});
  };
  add("negative_prompt", "of 4 bytes", [](R* r) { r->set_negative_prompt("blur"); });
  add("negative_prompt", "of 0 bytes", [](R* r) { r->set_negative_prompt(""); });
  add("num_inference_steps", "8", [](R* r) { r->set_num_inference_steps(8); });
  add("video_cfg_guidance_scale", "1", [](R* r) { r->set_video_cfg_guidance_scale(1); });
  add("video_stg_guidance_scale", "0", [](R* r) { r->set_video_stg_guidance_scale(0); });
  add("video_rescale_scale", "0.7", [](R* r) { r->set_video_rescale_scale(0.7); });
  add("video_stg_blocks", "[29]", [](R* r) { r->add_video_stg_blocks(29); });
  add("video_skip_step", "0", [](R* r) { r->set_video_skip_step(0); });
  add("a2v_guidance_scale", "3", [](R* r) { r->set_a2v_guidance_scale(3); });
  add("audio_cfg_guidance_scale", "7", [](R* r) { r->set_audio_cfg_guidance_scale(7); });
  add("audio_stg_guidance_scale", "1", [](R* r) { r->set_audio_stg_guidance_scale(1); });
  add("audio_rescale_scale", "0.7", [](R* r) { r->set_audio_rescale_scale(0.7); });
  add("audio_stg_blocks", "[3]", [](R* r) { r->add_audio_stg_blocks(3); });
  add("audio_skip_step", "1", [](R* r) { r->set_audio_skip_step(1); });
  add("v2a_guidance_scale", "3", [](R* r) { r->set_v2a_guidance_scale(3); });
  add("num_generated_keyframes", "2", [](R* r) { r->set_num_generated_keyframes(2); });
  // Not the recipe's fault, but the model's.
  cases.push_back({"enhance_prompt", "MODEL_KIND_MISMATCH", "true", "unset",
                   [](R* r) { r->set_enhance_prompt(true); }, absl::StatusCode::kFailedPrecondition,
                   "Gemma 4"});
  return cases;
}

TEST_F(RequestsTest, BadOnesAreRefusedByName) {
  const std::string before = ReadHealth(address()).queue().SerializeAsString();
  std::vector<BadRequest> cases = BadNumbers();
  for (const auto& more : {BadWords(), UnsupportedFields()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  for (const BadRequest& bad : cases) {
    SCOPED_TRACE(bad.field + " " + bad.value);
    v1::GenerateVideoRequest request = SmallRequest(1);
    bad.spoil(&request);
    const WireStream stream = CallGenerate(address(), request);
    const WireError& error = stream.error;
    EXPECT_THAT(stream.events, IsEmpty());
    EXPECT_EQ(error.code, bad.code);
    EXPECT_EQ(error.domain, "ltx-server");
    EXPECT_EQ(error.reason, bad.reason);
    EXPECT_EQ(error.field, bad.field);
    EXPECT_EQ(error.description, error.message);
    EXPECT_EQ(error.value, bad.value);
    EXPECT_THAT(error.legal, HasSubstr(bad.legal));
    EXPECT_THAT(error.message, HasSubstr(bad.field));
    EXPECT_THAT(error.message, HasSubstr(bad.value));
    EXPECT_THAT(error.message, HasSubstr(error.legal));
    EXPECT_THAT(error.message, HasSubstr(bad.words));
  }
  EXPECT_EQ(ReadHealth(address()).queue().SerializeAsString(), before);
}

TEST_F(RequestsTest, TheClientProgramTellsWhatIsWrong) {
  const std::string path = MakeFolder() + "/clip.mp4";
  const ProgramResult bad =
      server_->Client("generate", Join(ClipFlags(128, 128, 120, 1), {"--output", path}));
  EXPECT_EQ(bad.exit.code, 1);
  EXPECT_EQ(bad.out, "");
  EXPECT_EQ(bad.err,
            "ltx: INVALID_ARGUMENT: num_frames 120 is not legal: this model takes 17 to 49 frames, "
            "and frame counts are 8k + 1, here 113 or 121; legal: 49 [FRAME_LIMIT]\n");
  for (const auto& [flag, value] :
       {std::pair<std::string, std::string>{"--width", "wide"}, {"--no-such-flag", "1"}}) {
    const ProgramResult usage =
        server_->Client("generate", {"--prompt", "x", "--output", path, flag, value});
    EXPECT_EQ(usage.exit.code, 2) << flag;
    EXPECT_THAT(usage.LastErrorLine(), HasSubstr(flag));
  }
  EXPECT_EQ(server_->Client("generate", {"--prompt", "x"}).exit.code, 1);
  const ProgramResult nobody =
      RunProgram({kClientProgram, "health", "--server", "127.0.0.1:1", "--timeout", "0.5"});
  EXPECT_EQ(nobody.exit.code, 1);
  EXPECT_THAT(nobody.LastErrorLine(), HasSubstr("ltx: UNAVAILABLE: no server answers at "));
}

TEST_F(RequestsTest, UnwritableFileIsToldBeforeAnythingIsSent) {
  const std::string folder = MakeFolder();
  const v1::QueueInfo before = ReadHealth(address()).queue();
  const int log_lines = server_->CountLogLines("job ");
  for (const std::string& path :
       {folder + "/none/clip.mp4", folder, folder + "/clip.png", std::string("/proc/clip.mp4")}) {
    const ProgramResult result =
        server_->Client("generate", Join(SmallClipFlags(1), {"--output", path}));
    EXPECT_EQ(result.exit.code, 1);
    EXPECT_THAT(result.err, AnyOf(HasSubstr("NOT_FOUND"), HasSubstr("PERMISSION_DENIED"),
                                  HasSubstr("INVALID_ARGUMENT")));
    EXPECT_THAT(result.err, HasSubstr(path));
  }
  EXPECT_EQ(ReadHealth(address()).queue().SerializeAsString(), before.SerializeAsString());
  EXPECT_EQ(server_->CountLogLines("job "), log_lines);
  EXPECT_THAT(ListFolder(folder), IsEmpty());
}

TEST_F(RequestsTest, UploadsStartWithAHeader) {
  const WireError error = CallCondition(address());
  EXPECT_EQ(error.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error.reason, "CONDITION_UPLOAD");
  EXPECT_THAT(error.message, HasSubstr("a header as the first message"));
}

TEST_F(RequestsTest, StandardHealthAnswers) {
  for (const char* service : {"", "ltx.v1.VideoService"}) {
    const auto status = CallHealthCheck(address(), service);
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(*status, 1) << service;
  }
  EXPECT_EQ(CallHealthCheck(address(), "no.such.Service").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RequestsTest, ReflectionListsTheServices) {
  const auto services = ListServices(address());
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_THAT(*services, Contains("ltx.v1.VideoService"));
  EXPECT_THAT(*services, Contains("grpc.health.v1.Health"));
}

TEST_F(RequestsTest, HealthTellsModelDeviceAndMemory) {
  const v1::HealthResponse health = ReadHealth(address());
  EXPECT_EQ(health.state(), v1::HealthResponse::STATE_READY);
  EXPECT_NE(health.server_version(), "");
  EXPECT_EQ(health.model().name(), "ltx-tiny");
  EXPECT_EQ(health.model().kind(), "distilled");
  EXPECT_EQ(health.model().path(), kTinyModel);
  EXPECT_EQ(health.model().recipes_size(), 2);
  EXPECT_EQ(health.device().name(), "cpu");
  EXPECT_GT(health.device().threads(), 0);
  EXPECT_GT(health.device().system_available_bytes(), 0);
  int64_t total = 0;
  int64_t sum = 0;
  for (const v1::MemoryAmounts& memory : health.memory()) {
    (memory.owner() == "total" ? total : sum) += memory.live_bytes();
    if (memory.owner() == "activations" || memory.owner() == "workspace") {
      EXPECT_EQ(memory.live_bytes(), 0) << memory.owner();
    }
  }
  EXPECT_GT(total, 0);
  EXPECT_EQ(sum, total);
  EXPECT_EQ(server_->Client("health", {}).exit.code, 0);
}

}  // namespace
}  // namespace ltx::testing
