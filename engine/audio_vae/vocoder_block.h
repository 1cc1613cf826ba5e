#ifndef LTX_ENGINE_AUDIO_VAE_VOCODER_BLOCK_H_
#define LTX_ENGINE_AUDIO_VAE_VOCODER_BLOCK_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/audio_vae/anti_aliased_activation.h"
#include "engine/audio_vae/conv1d.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// Residual block of a vocoder generator: three steps
/// x += conv2(act2(conv1(act1(x)))), conv1 with that step's dilation, conv2 without. The activation
/// is a leaky ReLU for kHifiGan (Kong et al. 2020) and anti-aliased SnakeBeta for kAmp1 (BigVGAN
/// v2). Source: the reference's audio_vae/resnet.py:ResBlock1, audio_vae/vocoder.py:AMPBlock1.
class VocoderBlock {
 public:
  /// Steps of a block; a checkpoint names one dilation for each.
  static constexpr int kSteps = 3;
  /// Slope of the leaky ReLU inside the blocks and before the up-sampling convolutions.
  static constexpr float kLeakySlope = 0.1f;

  /// Weights below `loader`: convs1.{0,1,2}, convs2.{0,1,2} and, for kAmp1, acts1, acts2.
  /// FAILED_PRECONDITION for a dilation count other than three, and for kernels of kAmp1 that
  /// cannot keep the length; errors of the weight loader.
  static absl::StatusOr<VocoderBlock> Load(checkpoint::WeightLoader loader,
                                           checkpoint::GeneratorConfig::ResBlock form,
                                           int64_t channels, int64_t kernel,
                                           absl::Span<const int64_t> dilations, DType dtype);

  /// x [B, T, C], same shape out.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  struct Step {
    /// Undefined: leaky ReLU.
    std::optional<AntiAliasedActivation> activation1;
    std::optional<AntiAliasedActivation> activation2;
    Conv1d conv1;
    Conv1d conv2;
  };
  std::array<Step, kSteps> steps_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_VOCODER_BLOCK_H_
