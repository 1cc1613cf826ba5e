#ifndef LTX_ENGINE_VIDEO_VAE_ATTENTION_BLOCK_H_
#define LTX_ENGINE_VIDEO_VAE_ATTENTION_BLOCK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/video_vae/block.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// Self-attention over the positions of each frame on its own, with one head of the full width:
/// x + proj(softmax(q k^T / sqrt(C)) v) of n = x / max(|x|, 1e-12) sqrt(C) gamma. Block name
/// `attn`; an attention_head_dim in its parameters has no meaning. Source: the reference,
/// video_vae/attention.py:AttnBlock3D.
class AttentionBlock final : public Block {
 public:
  /// Reads norm.gamma [C, 1, 1], to_qkv [3 C, C, 1, 1] and proj [C, C, 1, 1] with biases below the
  /// loader's prefix.
  static absl::StatusOr<std::unique_ptr<AttentionBlock>> Load(checkpoint::WeightLoader loader,
                                                              int64_t channels);

  absl::StatusOr<Tensor> Forward(Tensor x, const BlockContext& context) const override;

 private:
  explicit AttentionBlock(int64_t channels) : channels_(channels) {}

  const int64_t channels_;
  Tensor gamma_;
  LinearWeight query_, key_, value_, proj_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_ATTENTION_BLOCK_H_
