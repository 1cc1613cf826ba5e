// A set of random weights is taken by the engine as a real one is, and makes a clip.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "engine/verify/clip_verifier.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"
#include "tools/random_model/checkpoint_writer.h"
#include "tools/random_model/model_layout.h"

namespace ltx::random_model {
namespace {

namespace fs = std::filesystem;
using checkpoint::GemmaFamily;

std::string WriteSet(const std::string& name, const ModelSize& size) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  const std::vector<FileLayout> files = FilesOf(size).value();
  for (const FileLayout& file : files) {
    const fs::path path = folder / file.path;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(WriteCheckpoint(file, path.string(), {}).ok());
  }
  std::ofstream(folder / "model.json") << ManifestOf("random");
  return folder.string();
}

/// Finite, and not the same value everywhere.
void ExpectContent(const std::vector<float>& values) {
  ASSERT_FALSE(values.empty());
  bool varies = false;
  for (const float value : values) {
    ASSERT_TRUE(std::isfinite(value));
    varies = varies || value != values.front();
  }
  EXPECT_TRUE(varies);
}

class RandomModelTest : public ::testing::TestWithParam<GemmaFamily> {};

TEST_P(RandomModelTest, LoadsAndMakesAClip) {
  const bool gemma4 = GetParam() == GemmaFamily::kGemma4;
  const auto files = checkpoint::ModelSet::Open(WriteSet(gemma4 ? "4" : "3", TinySize(GetParam())));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(files->unrecognised_files.empty());
  EXPECT_TRUE(files->warnings.empty()) << files->warnings.front();
  EXPECT_EQ(files->duration_head.has_value(), gemma4);
  const auto device = cpu::CpuDevice::Create({}).value();
  pipeline::ModelOptions options;
  const auto model = pipeline::Model::Load(device.get(), *files, options);
  ASSERT_TRUE(model.ok()) << model.status();
  pipeline::GenerationRequest request = (*model)->DefaultRequest();
  request.recipe = pipeline::Recipe::kDistilled;
  request.prompt = "a red circle";
  request.width = request.height = 64;
  request.num_frames = 9;
  const auto job = pipeline::GenerationJob::Create(model->get(), request);
  ASSERT_TRUE(job.ok()) << job.status();
  while (!(*job)->done()) {
    const auto unit = (*job)->Advance();
    ASSERT_TRUE(unit.ok()) << unit.status();
  }
  const auto result = (*job)->TakeResult();
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<pipeline::FinishedFrames> frames = (*job)->TakeFrames();
  ASSERT_EQ(frames.size(), 1u);
  const std::vector<uint8_t> rgb = ToBytes(*device, frames[0].bytes.rgb).value();
  verify::ClipView view;
  view.height = view.width = 64;
  view.frames = verify::SplitFrames(rgb, size_t{64} * 64 * 3);
  const auto verdict = verify::VerifyClip(view);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->passed) << verify::FormatReport(*verdict);
  ExpectContent(ToFloats(*device, result->waveform).value());
}

INSTANTIATE_TEST_SUITE_P(Families, RandomModelTest,
                         ::testing::Values(GemmaFamily::kGemma4, GemmaFamily::kGemma3));

}  // namespace
}  // namespace ltx::random_model
