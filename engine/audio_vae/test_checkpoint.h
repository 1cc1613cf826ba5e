#ifndef LTX_ENGINE_AUDIO_VAE_TEST_CHECKPOINT_H_
#define LTX_ENGINE_AUDIO_VAE_TEST_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// A checkpoint made in memory for tests: small random weights under official names.
class TestCheckpoint {
 public:
  TestCheckpoint();
  TestCheckpoint(const TestCheckpoint&) = delete;
  TestCheckpoint& operator=(const TestCheckpoint&) = delete;

  /// Random values in [-scale, scale].
  void Add(const std::string& name, const Shape& shape, float scale = 0.3f);
  void AddValues(const std::string& name, const Shape& shape, std::vector<float> values);
  void Remove(const std::string& name);

  /// `module`.weight [out, in, kernel...] and `module`.bias.
  void AddConv(const std::string& module, int64_t out, int64_t in,
               const std::vector<int64_t>& kernel, bool bias = true);
  /// audio_vae.decoder.* and the statistics.
  void AddDecoder(const checkpoint::AudioVaeConfig& config);
  /// vocoder.*.
  void AddVocoder(const checkpoint::VocoderConfig& config);
  /// The anti-aliased SnakeBeta below `prefix`.
  void AddSnake(const std::string& prefix, int64_t channels);
  void AddGenerator(const std::string& prefix, const checkpoint::GeneratorConfig& config);

  /// A loader over what was added so far; lives as long as this object.
  checkpoint::WeightLoader Loader(Device& device, DType compute = DType::kF32);

 private:
  void AddResnetBlock(const std::string& prefix, int64_t in, int64_t out, bool group_norm);
  void AddAttention(const std::string& prefix, int64_t channels, bool group_norm);
  void AddNorm(const std::string& prefix, int64_t channels);

  struct File;
  std::shared_ptr<File> file_;
  std::vector<std::unique_ptr<checkpoint::WeightSet>> sets_;
  uint32_t state_ = 1;
};

/// Two levels of eight channels, four latent bins of two channels.
checkpoint::AudioVaeConfig SmallVaeConfig();
/// 160 samples per frame, 16 channels.
checkpoint::GeneratorConfig SmallGeneratorConfig(checkpoint::GeneratorConfig::ResBlock form);
/// The two-stage form, 480 samples per frame at 48 kHz.
checkpoint::VocoderConfig SmallVocoderConfig();

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_TEST_CHECKPOINT_H_
