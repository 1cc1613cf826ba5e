#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/test_files.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"

namespace ltx::testing {
namespace {

using checkpoint::SafetensorsWriter;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kTransformer[] = "diffusion_models/ltx-tiny-distilled-transformer-bf16.safetensors";
constexpr char kTextEncoder[] = "text_encoders/gemma4-tiny-with-proj-ltx-tiny-bf16.safetensors";
constexpr char kVideoVae[] = "vae/ltx-tiny-video-vae-conv-bf16.safetensors";
constexpr char kDurationHead[] = "model_patches/ltx-tiny-duration-head-bf16.safetensors";
constexpr char kAudioVae[] = "vae/ltx-tiny-audio-vae-bf16.safetensors";
constexpr char kUpsampler[] =
    "latent_upscale_models/ltx-tiny-latent-spatial-upscaler-x2-bf16-1.0.safetensors";

/// Starts a server that cannot start: it ends with a failure and says why in the last line of
/// stderr, once, and holds every one of `words`.
void ExpectRefusal(std::vector<std::string> flags, const std::vector<std::string>& words) {
  for (const auto& [flag, value] :
       {std::pair<std::string, std::string>{"--model", kTinyModel}, {"--listen", "127.0.0.1:0"}}) {
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) continue;
    flags.insert(flags.end(), {flag, value});
  }
  const ProgramResult result = RunProgram(Join({kServerProgram}, flags));
  EXPECT_GT(result.exit.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const std::string line = result.LastErrorLine();
  EXPECT_EQ(line.rfind("ltx_server: ", 0), 0u) << result.err;
  for (const std::string& word : words) EXPECT_THAT(line, HasSubstr(word));
  EXPECT_EQ(result.err.find("ltx_server: "), result.err.rfind("ltx_server: ")) << result.err;
}

/// A copy of ltx-tiny with one file that the test changes.
class BrokenModel {
 public:
  explicit BrokenModel(const std::string& file)
      : folder_(MakeFolder() + "/model"), path_(folder_ + "/" + file) {
    const auto options = std::filesystem::copy_options::recursive;
    std::filesystem::copy(kTinyModel, folder_, options);
    original_ = ReadWholeFile(path_);
  }
  ~BrokenModel() { std::filesystem::remove_all(folder_); }
  BrokenModel(const BrokenModel&) = delete;
  BrokenModel& operator=(const BrokenModel&) = delete;

  const std::string& original() const { return original_; }
  const std::string& path() const { return path_; }
  void Write(const std::string& bytes) const { checkpoint::WriteTestFile(path_, bytes); }
  /// Expects that the server names the file and `words`.
  void ExpectRefused(std::vector<std::string> words) const {
    words.push_back(path_);
    ExpectRefusal({"--model", folder_}, words);
  }

 private:
  const std::string folder_;
  const std::string path_;
  std::string original_;
};

/// The JSON header of a safetensors file and what follows it.
struct Parts {
  json header;
  std::string data;
};
Parts Split(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return {json::parse(bytes.substr(8, length), nullptr, /*allow_exceptions=*/false),
          bytes.substr(8 + length)};
}

TEST(StartupTest, UnknownSettings) {
  ExpectRefusal({"--model", "no/such/folder"}, {"no/such/folder"});
  ExpectRefusal({"--model", MakeFolder()}, {"transformer"});
  ExpectRefusal({"--device", "cuda:99"}, {"device \"cuda:99\""});
  ExpectRefusal({"--device", "tpu"}, {"tpu", "auto, cpu, cuda and cuda:N"});
  ExpectRefusal({"--no-such-flag"}, {"--no-such-flag"});
  ExpectRefusal({"--threads", "many"}, {"--threads", "many"});
  ExpectRefusal({"--threads", "-1"}, {"threads -1", "0..1024"});
  ExpectRefusal({"--compute-dtype", "f64"}, {"f64", "auto, bf16, f32"});
  ExpectRefusal({"--log-level", "loud"}, {"loud", "debug"});
  ExpectRefusal({"--listen", "here"}, {"listen \"here\"", "HOST:PORT"});
  ExpectRefusal({"--listen", "127.0.0.1:99999"}, {"127.0.0.1:99999", "0..65535"});
  ExpectRefusal({"--listen", "192.0.2.1:0"}, {"cannot listen on 192.0.2.1:0"});
  ExpectRefusal({"--work-dir", "/no/such/folder"}, {"/no/such/folder"});
  ExpectRefusal({"--output-root", "/no/such/root"}, {"/no/such/root"});
}

TEST(StartupTest, BadConfigurationFile) {
  const std::string path = MakeFolder() + "/config.json";
  ExpectRefusal({"--config", path}, {path});
  checkpoint::WriteTestFile(path, R"({"no_such_key": 1})");
  ExpectRefusal({"--config", path}, {path, "no_such_key", "queue_capacity"});
  checkpoint::WriteTestFile(path, R"({"threads": "two"})");
  ExpectRefusal({"--config", path}, {path, "threads", "two", "integer"});
  checkpoint::WriteTestFile(path, "{threads");
  ExpectRefusal({"--config", path}, {path, "JSON"});
}

TEST(StartupTest, TakenPort) {
  const auto first = ServerProcess::Start();
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = (*first)->address();
  ExpectRefusal({"--listen", address}, {"cannot listen on " + address, "taken"});
  EXPECT_TRUE((*first)->process().running());
  EXPECT_EQ((*first)->Client("health", {}).exit.code, 0);
}

TEST(StartupTest, TruncatedFile) {
  const BrokenModel model(kTransformer);
  model.Write(model.original().substr(0, model.original().size() * 3 / 5));
  model.ExpectRefused({});
  model.Write(model.original().substr(0, 5));
  model.ExpectRefused({});
  model.Write("");
  model.ExpectRefused({});
}

TEST(StartupTest, HeaderOfAbsurdLength) {
  const BrokenModel model(kAudioVae);
  std::string bytes = model.original();
  const uint64_t length = uint64_t{1} << 60;
  std::memcpy(bytes.data(), &length, sizeof(length));
  model.Write(bytes);
  model.ExpectRefused({"1152921504606846976"});
}

TEST(StartupTest, OverlappingTensors) {
  const BrokenModel model(kUpsampler);
  Parts parts = Split(model.original());
  // Two tensors of one size; the second is moved onto the first.
  std::string first;
  std::string second;
  for (const auto& [name, entry] : parts.header.items()) {
    if (name == "__metadata__") continue;
    for (const auto& [other, other_entry] : parts.header.items()) {
      if (other <= name || other == "__metadata__") continue;
      if (other_entry["shape"] != entry["shape"]) continue;
      first = name;
      second = other;
    }
  }
  ASSERT_NE(second, "");
  parts.header[second]["data_offsets"] = parts.header[first]["data_offsets"];
  model.Write(checkpoint::SafetensorsBytes(parts.header.dump(), parts.data));
  model.ExpectRefused({"overlap"});
}

TEST(StartupTest, MissingTensor) {
  const std::string name = "model.diffusion_model.transformer_blocks.2.attn1.to_q.weight";
  const BrokenModel model(kTransformer);
  SafetensorsWriter::Copy(model.path()).Remove(name).WriteTo(model.path());
  ASSERT_NE(ReadWholeFile(model.path()).size(), model.original().size());
  model.ExpectRefused({name});
}

TEST(StartupTest, TensorOfTheWrongShape) {
  const std::string name = "model.diffusion_model.transformer_blocks.2.attn1.to_q.weight";
  const BrokenModel model(kTransformer);
  SafetensorsWriter::Copy(model.path()).Reshape(name, {128, 96}).WriteTo(model.path());
  model.ExpectRefused({name, "[128, 96]", "[128, 128]"});
}

TEST(StartupTest, TensorsThatNothingReads) {
  for (const auto& [file, name] : std::vector<std::pair<std::string, std::string>>{
           {kTransformer, "model.diffusion_model.transformer_blocks.2.attn1.to_q.input_scale"},
           {kTransformer, "model.diffusion_model.video_embeddings_connector.extra"},
           {kTextEncoder, "model.layers.1.self_attn.q_proj.input_scale"},
           {kTextEncoder, "text_embedding_projection.video_aggregate_embed.input_scale"},
           {kVideoVae, "decoder.conv_in.conv.input_scale"},
           {kAudioVae, "audio_vae.decoder.conv_in.conv.input_scale"},
           {kAudioVae, "vocoder.vocoder.conv_pre.input_scale"},
           {kUpsampler, "initial_conv.input_scale"},
           {kDurationHead, "duration_head.video_input_proj.input_scale"}}) {
    SCOPED_TRACE(name);
    const BrokenModel model(file);
    SafetensorsWriter::Copy(model.path()).Floats(name, {1}, {1.0f}).WriteTo(model.path());
    model.ExpectRefused({name});
  }
}

TEST(StartupTest, ConfigThatContradictsTheTensors) {
  const BrokenModel model(kTransformer);
  SafetensorsWriter writer = SafetensorsWriter::Copy(model.path());
  json config = json::parse(writer.metadata().at("config"), nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(config["transformer"].contains("num_layers")) << config.dump(1);
  config["transformer"]["num_layers"] = 5;
  writer.JsonMetadata("config", config).WriteTo(model.path());
  model.ExpectRefused({"num_layers"});
}

TEST(StartupTest, FilesThatDoNotBelongTogether) {
  const BrokenModel model(kVideoVae);
  SafetensorsWriter writer = SafetensorsWriter::Copy(model.path());
  json config = json::parse(writer.metadata().at("config"), nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(config["vae"].contains("latent_channels")) << config.dump(1);
  config["vae"]["latent_channels"] = 64;
  writer.JsonMetadata("config", config).WriteTo(model.path());
  model.ExpectRefused({"files that do not belong together", kTransformer,
                       "config.transformer.in_channels is 128", "is 64"});
}

}  // namespace
}  // namespace ltx::testing
