#include "tests/lora_model/lora_model.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/model_set.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/test_files.h"
#include "gtest/gtest.h"
#include "tools/random_model/checkpoint_writer.h"
#include "tools/random_model/model_layout.h"
#include "tools/random_model/model_size.h"

namespace ltx::testing {
namespace {

using checkpoint::SafetensorsWriter;

constexpr char kTiny[] = "models/ltx-tiny";
constexpr int64_t kRank = 3;
// Two factors of these, summed over the rank, change a weight by some thousandths: weights of
// ltx-tiny are around a tenth.
constexpr float kAmplitude = 0.04f;

class Factors {
 public:
  void Add(const std::string& module, int64_t in, int64_t out) {
    const std::string name = "diffusion_model." + module;
    writer_.BFloat16s(name + ".lora_A.weight", {kRank, in}, Values(kRank * in));
    writer_.BFloat16s(name + ".lora_B.weight", {out, kRank}, Values(out * kRank));
  }
  const SafetensorsWriter& writer() const { return writer_; }

 private:
  std::vector<float> Values(int64_t count) {
    std::uniform_real_distribution<float> uniform(-kAmplitude, kAmplitude);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(random_);
    return values;
  }
  std::mt19937 random_{7};
  SafetensorsWriter writer_;
};

void AddLora(const std::string& folder, const std::string& stranger) {
  const auto transformer = checkpoint::ModelSet::Open(folder).value().transformer_file;
  Factors factors;
  for (const auto& [name, entry] : transformer->entries()) {
    absl::string_view module = name;
    const bool in_block =
        absl::ConsumePrefix(&module, "model.diffusion_model.transformer_blocks.") &&
        absl::ConsumeSuffix(&module, ".weight") && entry.shape.rank() == 2;
    if (!in_block || absl::StrContains(module, "to_gate_logits")) continue;
    factors.Add("transformer_blocks." + std::string(module), entry.shape.dim(1),
                entry.shape.dim(0));
  }
  if (!stranger.empty()) factors.Add(stranger, 8, 8);
  std::filesystem::create_directory(folder + "/loras");
  factors.writer().WriteTo(folder + "/loras/" + kLoraName);
}

}  // namespace

std::string MakeLoraModel(const std::string& parent, const std::string& stranger) {
  const std::string folder = parent + "/model";
  std::filesystem::copy(kTiny, folder, std::filesystem::copy_options::recursive);
  checkpoint::WriteTestFile(folder + "/model.json", R"({
    "name": "ltx-tiny-full", "kind": "dev",
    "defaults": {"width": 256, "height": 192, "num_frames": 25, "frame_rate": 24.0},
    "limits": {"min_frames": 17, "max_frames": 49, "min_size": 96, "max_size": 256}})");
  AddLora(folder, stranger);
  return folder;
}

std::string MakeWideLoraModel(const std::string& parent) {
  random_model::ModelSize size = random_model::TinySize();
  size.video_head_dim = 64;
  const std::string folder = parent + "/model";
  const std::vector<random_model::FileLayout> files = random_model::FilesOf(size).value();
  for (const random_model::FileLayout& file : files) {
    const std::filesystem::path path = folder + "/" + file.path;
    std::filesystem::create_directories(path.parent_path());
    const absl::Status written = random_model::WriteCheckpoint(file, path.string(), {});
    EXPECT_TRUE(written.ok()) << written;
  }
  checkpoint::WriteTestFile(folder + "/model.json", R"({"name": "wide", "kind": "dev"})");
  AddLora(folder, "");
  return folder;
}

}  // namespace ltx::testing
