#ifndef LTX_ENGINE_DIT_TEST_MODEL_H_
#define LTX_ENGINE_DIT_TEST_MODEL_H_

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/dit/modality.h"
#include "engine/dit/tensor_shapes.h"
#include "engine/dit/transformer.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {

/// A small transformer with random weights for tests.

/// A safetensors file that lives in memory and can be changed.
class MemoryFile final : public checkpoint::SafetensorsFile {
 public:
  MemoryFile() { path_ = "memory.safetensors"; }

  void Set(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    std::vector<uint8_t>& bytes = data_[name];
    bytes.resize(values.size() * sizeof(float));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    entries_[name] = {DType::kF32, shape, absl::MakeConstSpan(bytes)};
  }
  void Remove(const std::string& name) { entries_.erase(name); }

 private:
  std::map<std::string, std::vector<uint8_t>> data_;
};

inline std::vector<float> RandomValues(int64_t count, uint32_t seed, float amplitude = 1.0f) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-amplitude, amplitude);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

inline std::shared_ptr<MemoryFile> RandomFile(const TensorShapes& shapes) {
  auto file = std::make_shared<MemoryFile>();
  uint32_t seed = 1;
  for (const auto& [name, shape] : shapes) {
    // Keeps the variance of a layer's output near that of its input.
    const float amplitude = shape.rank() == 2 && absl::EndsWith(name, ".weight")
                                ? std::sqrt(3.0f / static_cast<float>(shape.dim(1)))
                                : 0.5f;
    file->Set(name, shape, RandomValues(shape.num_elements(), seed++, amplitude));
  }
  return file;
}

/// The 2.5 switches at widths 16 (video) and 8 (audio), 2 heads, 2 blocks.
inline checkpoint::TransformerConfig SmallConfig() {
  checkpoint::TransformerConfig config;
  config.num_attention_heads = 2;
  config.attention_head_dim = 8;
  config.audio_num_attention_heads = 2;
  config.audio_attention_head_dim = 4;
  config.in_channels = 5;
  config.out_channels = 5;
  config.audio_in_channels = 3;
  config.audio_out_channels = 3;
  config.num_layers = 2;
  config.cross_attention_dim = 16;
  config.audio_cross_attention_dim = 8;
  config.double_precision_rope = true;
  config.av_ca_timestep_scale_multiplier = 1000.0;
  config.apply_gated_attention = true;
  config.cross_attention_adaln = true;
  config.ff_bias = false;
  config.use_keyframes_abs_pos_embedding = true;
  config.caption_proj_before_connector = true;
  return config;
}

inline std::unique_ptr<cpu::CpuDevice> TestDevice() {
  auto device = cpu::CpuDevice::Create({});
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

/// The model in `file`, or the reason why there is none.
inline absl::StatusOr<std::unique_ptr<Transformer>> LoadModel(
    Device& device, const checkpoint::TransformerConfig& config,
    const std::shared_ptr<const checkpoint::SafetensorsFile>& file,
    ModelClass model_class = ModelClass::kAudioVideo) {
  checkpoint::WeightSet weights;
  if (absl::Status status = weights.Add(file); !status.ok()) return status;
  return Transformer::Load(
      config, model_class,
      checkpoint::WeightLoader(&device, &weights, DType::kF32, MemoryOwner::kWeightsDit));
}

/// Positions of a stream: interval starts and ends that grow with the token.
inline std::vector<float> TestPositions(int64_t batch, int64_t axes, int64_t tokens) {
  std::vector<float> positions;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t a = 0; a < axes; ++a) {
      for (int64_t n = 0; n < tokens; ++n) {
        const float start = static_cast<float>(a == 0 ? n : 32 * ((n * (a + 1)) % 5));
        positions.push_back(start + 0.25f * static_cast<float>(b));
        positions.push_back(start + (a == 0 ? 0.5f : 32.0f));
      }
    }
  }
  return positions;
}

/// Everything a forward takes, changeable before Run.
struct TestInputs {
  explicit TestInputs(int64_t batch_size = 2) : batch(batch_size) {
    video_layout.batch = audio_layout.batch = batch;
    video_layout.tokens = 6;
    audio_layout.tokens = 4;
    video_layout.positions = TestPositions(batch, 3, video_layout.tokens);
    audio_layout.positions = TestPositions(batch, 1, audio_layout.tokens);
    video_layout.keyframes_mask.assign(batch * video_layout.tokens, 0.0f);
    for (int64_t b = 0; b < batch; ++b) video_layout.keyframes_mask[b * video_layout.tokens] = 1.0f;
    for (int64_t b = 0; b < batch; ++b) {
      video.sigma.push_back(0.8f - 0.1f * static_cast<float>(b));
      audio.sigma.push_back(0.6f - 0.1f * static_cast<float>(b));
    }
    video_latent = RandomValues(batch * video_layout.tokens * 5, 101);
    audio_latent = RandomValues(batch * audio_layout.tokens * 3, 102);
    video_context = RandomValues(batch * context_tokens * 16, 103);
    audio_context = RandomValues(batch * context_tokens * 8, 104);
    video.timesteps = PerToken(video.sigma, video_layout.tokens);
    audio.timesteps = PerToken(audio.sigma, audio_layout.tokens);
  }

  static std::vector<float> PerToken(const std::vector<float>& sigma, int64_t tokens) {
    std::vector<float> timesteps;
    for (const float s : sigma) timesteps.insert(timesteps.end(), tokens, s);
    return timesteps;
  }

  /// Uploads the host values and runs; null streams as told.
  absl::StatusOr<StreamPair> Run(const Transformer& model, bool with_video = true,
                                 bool with_audio = true) {
    absl::Status status = Upload(model, with_video, with_audio);
    if (!status.ok()) return status;
    return model.Forward(with_video ? &video : nullptr, with_audio ? &audio : nullptr,
                         perturbations);
  }

  absl::Status Upload(const Transformer& model, bool with_video = true, bool with_audio = true) {
    if (with_video) {
      LTX_ASSIGN_OR_RETURN(video.prepared, model.Prepare(StreamKind::kVideo, video_layout));
      LTX_ASSIGN_OR_RETURN(video.latent,
                           TensorFromFloats(model.device(), video_latent,
                                            {batch, video_layout.tokens, 5}, model.dtype()));
      LTX_ASSIGN_OR_RETURN(
          video.context,
          TensorFromFloats(model.device(), video_context,
                           {batch, context_tokens,
                            static_cast<int64_t>(video_context.size()) / batch / context_tokens},
                           model.dtype()));
    }
    if (with_audio) {
      LTX_ASSIGN_OR_RETURN(audio.prepared, model.Prepare(StreamKind::kAudio, audio_layout));
      LTX_ASSIGN_OR_RETURN(audio.latent,
                           TensorFromFloats(model.device(), audio_latent,
                                            {batch, audio_layout.tokens, 3}, model.dtype()));
      LTX_ASSIGN_OR_RETURN(
          audio.context,
          TensorFromFloats(model.device(), audio_context,
                           {batch, context_tokens,
                            static_cast<int64_t>(audio_context.size()) / batch / context_tokens},
                           model.dtype()));
    }
    return absl::OkStatus();
  }

  int64_t batch;
  int64_t context_tokens = 3;
  StreamLayout video_layout;
  StreamLayout audio_layout;
  Modality video;
  Modality audio;
  std::vector<float> video_latent;
  std::vector<float> audio_latent;
  std::vector<float> video_context;
  std::vector<float> audio_context;
  BatchPerturbations perturbations;
};

/// The elements of a result; empty for a failed or undefined one.
inline std::vector<float> Values(Device& device, const Tensor& tensor) {
  if (!tensor.defined()) return {};
  auto values = ToFloats(device, tensor);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<float>();
}

/// ||a - b|| / ||b||.
inline double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return norm == 0.0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TEST_MODEL_H_
