#ifndef LTX_ENGINE_AUDIO_VAE_ATTENTION_BLOCK_H_
#define LTX_ENGINE_AUDIO_VAE_ATTENTION_BLOCK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/audio_vae/normalization.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// y = x + proj_out(attention(norm(x))): one head over all time x bins positions, scale
/// 1/sqrt(channels), not causal. q, k, v and proj_out are 1x1 convolutions (source: the reference's
/// audio_vae/attention.py:AttnBlock). Released checkpoints carry none of these.
class AttentionBlock {
 public:
  /// Its work grows with the square of time x bins. 65536 positions are ten seconds of sound at the
  /// finest level of the released layout (100 frames/s x 64 bins), a few TFLOP; beyond that a
  /// request is refused instead of holding a device for minutes.
  static constexpr int64_t kMaxPositions = 65536;

  /// `loader` stands below the block's prefix. Errors of the weight loader.
  static absl::StatusOr<AttentionBlock> Load(checkpoint::WeightLoader loader, int64_t channels,
                                             checkpoint::AudioNorm norm);

  /// x [B, time, bins, C], same shape out. INVALID_ARGUMENT beyond kMaxPositions.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

 private:
  Normalization norm_;
  ConvWeight query_;
  ConvWeight key_;
  ConvWeight value_;
  ConvWeight projection_;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_ATTENTION_BLOCK_H_
