#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/clip_reader.h"
#include "google/protobuf/util/json_util.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"

namespace ltx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The client program against one server that may write below one folder.
class GenerationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = MakeFolder();
    work_dir_ = MakeFolder();
    auto server = ServerProcess::Start({"--output-root", root_, "--work-dir", work_dir_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() {
    server_->process().Signal(SIGTERM);
    const auto exit = server_->process().Wait(kLimit);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->code, 0);
    EXPECT_THAT(ListFolder(work_dir_), IsEmpty());
    server_.reset();
  }

  ProgramResult Generate(const std::vector<std::string>& flags) {
    return server_->Client("generate", flags);
  }
  /// Generates into a file of its own and returns its bytes.
  std::string Bytes(const std::vector<std::string>& flags) {
    const std::string path = folder_ + "/bytes.mp4";
    std::filesystem::remove(path);
    const ProgramResult result = Generate(Join(flags, {"--output", path, "--quiet"}));
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return ReadWholeFile(path);
  }
  static v1::GenerationReport ParseReport(const std::string& json) {
    v1::GenerationReport report;
    const auto status = google::protobuf::util::JsonStringToMessage(json, &report);
    EXPECT_TRUE(status.ok()) << status.ToString() << json;
    return report;
  }

  static std::unique_ptr<ServerProcess> server_;
  static std::string root_;
  static std::string work_dir_;
  const std::string folder_ = MakeFolder();
};
std::unique_ptr<ServerProcess> GenerationTest::server_;
std::string GenerationTest::root_;
std::string GenerationTest::work_dir_;

TEST_F(GenerationTest, TwoStageClipIsWhatWasAskedFor) {
  const std::string path = folder_ + "/clip.mp4";
  const ProgramResult result =
      Generate(Join(ClipFlags(192, 128, 25, 3, "distilled"), {"--output", path}));
  ASSERT_EQ(result.exit.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(path));
  EXPECT_THAT(result.err, HasSubstr("stage 2 3/3"));
  EXPECT_THAT(ListFolder(folder_), ElementsAre("clip.mp4"));

  const auto clip = media::ReadClip(path);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->width, 192);
  EXPECT_EQ(clip->height, 128);
  EXPECT_EQ(clip->num_frames, 25);
  EXPECT_EQ(clip->frame_rate_numerator, 24 * clip->frame_rate_denominator);
  EXPECT_EQ(clip->video_codec, "h264");
  EXPECT_EQ(clip->pixel_format, "yuv420p");
  EXPECT_EQ(clip->audio_codec, "aac");
  EXPECT_EQ(clip->audio_channels, 2);
  EXPECT_EQ(clip->audio_sample_rate, 48000);
  EXPECT_EQ(clip->waveform.size(), 2u * 50000);

  const ProgramResult verdict = RunProgram({kClientProgram, "verify", path});
  EXPECT_EQ(verdict.exit.code, 0) << verdict.out << verdict.err;
  EXPECT_THAT(verdict.out, HasSubstr("verdict           passed"));
}

TEST_F(GenerationTest, SoundIsAsLongAsThePictureAtAnyFrameRate) {
  for (const auto& [rate, numerator, denominator] :
       {std::tuple<std::string, int64_t, int64_t>{"29.97", 30000, 1001},
        {"23.976", 24000, 1001},
        {"12.5", 25, 2},
        {"60", 60, 1}}) {
    const std::string path = absl::StrCat(folder_, "/", rate, ".mp4");
    const ProgramResult result = Generate(
        Join(SmallClipFlags(5), {"--frame-rate", rate, "--output", path, "--quiet", "--json"}));
    ASSERT_EQ(result.exit.code, 0) << result.err;
    const auto clip = media::ReadClip(path);
    ASSERT_TRUE(clip.ok()) << clip.status();
    EXPECT_EQ(clip->num_frames, 17) << rate;
    EXPECT_EQ(clip->frame_rate_numerator * denominator, numerator * clip->frame_rate_denominator)
        << rate;
    const auto samples =
        static_cast<int64_t>(std::llround(17.0 * denominator / numerator * 48000.0));
    EXPECT_EQ(static_cast<int64_t>(clip->waveform.size()), 2 * samples) << rate;
    EXPECT_EQ(ParseReport(result.out).audio_samples(), samples) << rate;
  }
}

TEST_F(GenerationTest, SeedAndPromptDecideTheBytes) {
  const std::string first = Bytes(SmallClipFlags(1));
  EXPECT_EQ(Bytes(SmallClipFlags(1)), first);
  EXPECT_NE(Bytes(SmallClipFlags(2)), first);
  EXPECT_NE(Bytes(ClipFlags(128, 128, 17, 1, "distilled")),
            Bytes(ClipFlags(128, 128, 17, 1, "distilled_one_stage")));
  std::vector<std::string> other = SmallClipFlags(1);
  other[1] = "a green square moves down, soft noise";
  EXPECT_NE(Bytes(other), first);
}

TEST_F(GenerationTest, EmptyPromptIsLegal) {
  std::vector<std::string> flags = SmallClipFlags(1);
  flags[1] = "";
  const std::string path = folder_ + "/empty.mp4";
  const ProgramResult result = Generate(Join(flags, {"--output", path, "--json"}));
  ASSERT_EQ(result.exit.code, 0) << result.err;
  EXPECT_TRUE(ParseReport(result.out).verifier().passed());
}

TEST_F(GenerationTest, ReportTellsEverything) {
  const std::string path = folder_ + "/clip.mp4";
  const ProgramResult result =
      Generate(Join(ClipFlags(128, 128, 17, -2, "distilled"), {"--output", path, "--json"}));
  ASSERT_EQ(result.exit.code, 0) << result.err;
  const v1::GenerationReport report = ParseReport(result.out);
  EXPECT_NE(report.job_id(), "");
  EXPECT_EQ(report.model_name(), "ltx-tiny");
  EXPECT_EQ(report.model_version(), "2.5.1");
  EXPECT_EQ(report.device(), "cpu");
  const v1::EffectiveParameters& parameters = report.parameters();
  EXPECT_EQ(parameters.recipe(), "distilled");
  EXPECT_EQ(parameters.width(), 128);
  EXPECT_EQ(parameters.height(), 128);
  EXPECT_EQ(parameters.num_frames(), 17);
  EXPECT_EQ(parameters.frame_rate_numerator(), 24);
  EXPECT_EQ(parameters.frame_rate_denominator(), 1);
  EXPECT_EQ(parameters.seed(), static_cast<uint64_t>(-2));
  EXPECT_EQ(parameters.noise_generator(), v1::NOISE_GENERATOR_TORCH_CPU);
  EXPECT_EQ(parameters.noise_dtype(), v1::NOISE_DTYPE_FLOAT32);
  EXPECT_EQ(parameters.compute_dtype(), "f32");
  ASSERT_EQ(parameters.stages_size(), 2);
  EXPECT_EQ(parameters.stages(0).width(), 64);
  EXPECT_EQ(parameters.stages(0).sigmas_size(), 9);
  EXPECT_EQ(parameters.stages(1).width(), 128);
  EXPECT_EQ(parameters.stages(1).sigmas_size(), 4);
  // A 16th of 128 x 128 and 3 latent frames.
  EXPECT_EQ(parameters.stages(1).video_tokens(), 4 * 4 * 3);
  EXPECT_GT(parameters.stages(1).audio_tokens(), 0);

  std::vector<int> phases;
  double seconds = 0;
  for (const v1::PhaseTiming& timing : report.timings()) {
    phases.push_back(timing.phase());
    EXPECT_GT(timing.seconds(), 0.0) << v1::Phase_Name(timing.phase());
    seconds += timing.seconds();
  }
  EXPECT_THAT(phases,
              ElementsAre(v1::PHASE_TEXT, v1::PHASE_STAGE_1, v1::PHASE_UPSAMPLE, v1::PHASE_STAGE_2,
                          v1::PHASE_VIDEO_DECODE, v1::PHASE_AUDIO_DECODE, v1::PHASE_MUX));
  EXPECT_LE(seconds, report.run_seconds());
  EXPECT_GE(report.queue_seconds(), 0.0);

  std::map<std::string, v1::MemoryAmounts> memory;
  for (const v1::MemoryAmounts& amounts : report.memory()) memory[amounts.owner()] = amounts;
  ASSERT_EQ(memory.size(), 11u);
  for (const auto& [owner, amounts] : memory) {
    EXPECT_GE(amounts.peak_bytes(), amounts.live_bytes()) << owner;
    EXPECT_LE(amounts.peak_bytes(), memory["total"].peak_bytes()) << owner;
  }
  for (const char* owner : {"weights/text", "weights/dit", "weights/video_vae", "weights/audio_vae",
                            "weights/upsampler", "activations", "media"}) {
    EXPECT_GT(memory[owner].peak_bytes(), 0) << owner;
  }
  // The frames in bytes, as RGB and as the encoder takes them, at the least.
  EXPECT_GE(memory["media"].peak_bytes(), 17 * 128 * 128 * (3 + 1.5));

  const v1::VerifierReport& verifier = report.verifier();
  EXPECT_TRUE(verifier.passed());
  EXPECT_EQ(verifier.failures_size(), 0);
  EXPECT_EQ(verifier.frames(), 17);
  EXPECT_EQ(verifier.distinct_frames(), 17);
  EXPECT_EQ(verifier.near_black_frames(), 0);
  EXPECT_GT(verifier.adjacent_mad(), 0.0);
  EXPECT_LT(verifier.adjacent_far_ratio(), 0.9);
  EXPECT_EQ(verifier.audio_rms_dbfs_size(), 2);
  EXPECT_GT(verifier.audio_spectral_crest(), 1.0);

  // Nine words and two marks, each a token, between begin and end.
  EXPECT_GT(report.prompt_tokens(), 8);
  EXPECT_EQ(report.dropped_prompt_tokens(), 0);
  EXPECT_EQ(report.output_path(), "");
  EXPECT_EQ(report.media_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  EXPECT_EQ(report.audio_samples(), 34000);
  EXPECT_EQ(report.audio_sample_rate(), 48000);
  EXPECT_EQ(report.warnings_size(), 0);
}

TEST_F(GenerationTest, WhatIsNotAskedForIsTheModelsDefault) {
  const ProgramResult result = Generate(
      {"--prompt", "a blue box", "--output", folder_ + "/default.mp4", "--json", "--quiet"});
  ASSERT_EQ(result.exit.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const v1::EffectiveParameters parameters = ParseReport(result.out).parameters();
  EXPECT_EQ(parameters.recipe(), "distilled");
  EXPECT_EQ(parameters.width(), 256);
  EXPECT_EQ(parameters.height(), 192);
  EXPECT_EQ(parameters.num_frames(), 25);
  EXPECT_EQ(parameters.seed(), 10u);
}

TEST_F(GenerationTest, ServerWritesBelowItsRootOnly) {
  const std::string inside = root_ + "/inside.mp4";
  const ProgramResult good =
      Generate(Join(SmallClipFlags(1), {"--server-output", inside, "--json"}));
  ASSERT_EQ(good.exit.code, 0) << good.err;
  EXPECT_EQ(std::filesystem::canonical(ParseReport(good.out).output_path()),
            std::filesystem::canonical(inside));
  EXPECT_THAT(ListFolder(root_), ElementsAre("inside.mp4"));
  // The file is the one that the same request streams.
  EXPECT_EQ(ReadWholeFile(inside), Bytes(SmallClipFlags(1)));

  std::filesystem::create_symlink(folder_, root_ + "/link");
  for (const auto& [path, word] :
       {std::pair<std::string, std::string>{folder_ + "/outside.mp4", "outside"},
        {root_ + "/../outside.mp4", "outside"},
        {root_ + "/link/outside.mp4", "outside"},
        {root_ + "/none/clip.mp4", "does not exist"},
        {root_ + "/clip.avi", ".mp4"},
        {"clip.mp4", "absolute"}}) {
    const ProgramResult bad = Generate(Join(SmallClipFlags(1), {"--server-output", path}));
    EXPECT_EQ(bad.exit.code, 1) << path;
    EXPECT_THAT(bad.LastErrorLine(), HasSubstr(word));
    EXPECT_THAT(bad.LastErrorLine(), HasSubstr(path));
    EXPECT_THAT(bad.LastErrorLine(), HasSubstr("[OUTPUT_PATH]"));
  }
  std::filesystem::remove(root_ + "/link");
  EXPECT_THAT(ListFolder(root_), ElementsAre("inside.mp4"));
  EXPECT_THAT(ListFolder(folder_), ElementsAre("bytes.mp4"));
}

TEST_F(GenerationTest, OneFrameIsAPicture) {
  // ltx-tiny itself asks for 17 frames and more.
  const auto server = ServerProcess::StartModel(LargeModel(), {"--output-root", root_});
  ASSERT_TRUE(server.ok()) << server.status();
  for (const char* recipe : {"distilled", "distilled_one_stage"}) {
    const std::string path = folder_ + "/still.png";
    const std::vector<std::string> flags = ClipFlags(192, 128, 1, 3, recipe);
    const ProgramResult result =
        (*server)->Client("generate", Join(flags, {"--output", path, "--json", "--quiet"}));
    ASSERT_EQ(result.exit.code, 0) << result.err;
    const v1::GenerationReport report = ParseReport(result.out);
    EXPECT_EQ(report.model_name(), "large");
    EXPECT_EQ(report.media_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
    const auto still = media::ReadClip(path);
    ASSERT_TRUE(still.ok()) << still.status();
    EXPECT_EQ(still->video_codec, "png");
    EXPECT_EQ(still->num_frames, 1);
    EXPECT_EQ(still->width, 192);
    EXPECT_EQ(still->height, 128);

    const std::string by_server = root_ + "/still.png";
    EXPECT_EQ((*server)->Client("generate", Join(flags, {"--server-output", by_server})).exit.code,
              0);
    EXPECT_EQ(ReadWholeFile(by_server), ReadWholeFile(path));
    std::filesystem::remove(by_server);
    EXPECT_EQ((*server)->Client("generate", Join(flags, {"--output", "still.mp4"})).exit.code, 1);
  }
}

TEST_F(GenerationTest, AFileOfPromptsMakesAClipEach) {
  const std::string prompts = folder_ + "/prompts.txt";
  std::ofstream(prompts) << "a red circle\n\na blue square\n";
  const std::vector<std::string> flags = {"--prompts-file", prompts,
                                          "--width",        "96",
                                          "--height",       "96",
                                          "--num-frames",   "17",
                                          "--seed",         "1",
                                          "--recipe",       "distilled_one_stage",
                                          "--output",       folder_ + "/listed.mp4",
                                          "--quiet"};
  const ProgramResult result = Generate(flags);
  EXPECT_EQ(result.exit.code, 0) << result.err;
  const std::string first = ReadWholeFile(folder_ + "/listed-1.mp4");
  const std::string second = ReadWholeFile(folder_ + "/listed-2.mp4");
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/listed-3.mp4"));
  EXPECT_EQ(first, Bytes({"--prompt", "a red circle", "--width", "96", "--height", "96",
                          "--num-frames", "17", "--seed", "1", "--recipe", "distilled_one_stage"}));
}

}  // namespace
}  // namespace ltx::testing
