#ifndef LTX_ENGINE_AUDIO_VAE_VOCODER_GENERATOR_H_
#define LTX_ENGINE_AUDIO_VAE_VOCODER_GENERATOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/audio_vae/anti_aliased_activation.h"
#include "engine/audio_vae/conv1d.h"
#include "engine/audio_vae/vocoder_block.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// A mel-to-waveform generator: conv_pre, then for each rate a transposed convolution and the mean
/// of that stage's residual blocks, then an activation, conv_post to left and right, and the final
/// activation (tanh, a clamp to [-1, 1], or none for the bandwidth extension). HiFi-GAN form: leaky
/// ReLU of slope 0.1 before every transposed convolution and of slope 0.01 at the end, in the
/// compute dtype. AMP1 form: anti-aliased SnakeBeta at the end, in f32 whatever the compute dtype,
/// because bf16 errors grow over its chain of about a hundred convolutions. Source: the reference's
/// audio_vae/vocoder.py:Vocoder.
class VocoderGenerator {
 public:
  /// Stereo x 64 mel bins, fixed by the architecture.
  static constexpr int64_t kInputChannels = 128;
  static constexpr int64_t kOutputChannels = 2;

  /// `loader` stands below the generator's prefix. FAILED_PRECONDITION, naming the key, for a
  /// config whose lists do not fit together or that halves the channels to nothing; errors of the
  /// weight loader.
  static absl::StatusOr<VocoderGenerator> Load(checkpoint::WeightLoader loader,
                                               const checkpoint::GeneratorConfig& config);

  /// Dtype of signals inside: f32 for AMP1, else the compute dtype.
  DType dtype() const { return dtype_; }
  /// Samples for `frames` mel frames.
  int64_t OutputLength(int64_t frames) const;

  /// mel [B, T, 128] of dtype(), feature index side * 64 + bin -> [B, OutputLength(T), 2].
  /// Stages: conv_pre, ups_0, resblock_0 (one block, before the mean), conv_post (before the final
  /// activation), all [B, T, C].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& mel,
                                 const StageObserver& observer = {}) const;

 private:
  struct Stage {
    int64_t rate = 1;
    int64_t kernel = 1;
    ConvTranspose1d upsample;
    std::vector<VocoderBlock> blocks;
  };
  absl::StatusOr<Tensor> RunBlocks(Device& device, const Stage& stage, const Tensor& x,
                                   const StageObserver& observer) const;

  checkpoint::GeneratorConfig config_;
  DType dtype_ = DType::kF32;
  Conv1d conv_pre_;
  std::vector<Stage> stages_;
  std::optional<AntiAliasedActivation> final_snake_;
  Conv1d conv_post_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_VOCODER_GENERATOR_H_
