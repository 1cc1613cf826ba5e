#ifndef LTX_ENGINE_VIDEO_VAE_CONV_DECODER_H_
#define LTX_ENGINE_VIDEO_VAE_CONV_DECODER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "engine/video_vae/block.h"
#include "engine/video_vae/causal_conv3d.h"
#include "engine/video_vae/norm.h"
#include "engine/video_vae/statistics.h"
#include "engine/video_vae/timestep_embedding.h"
#include "engine/video_vae/video_decoder.h"
#include "kernels/device.h"

namespace ltx::video_vae {

struct ConvDecodeOptions {
  /// Needed if the decoder is timestep-conditioned or injects noise. Draws, in this order: one of
  /// the latent's shape (conditioning only), then the spatial ones in execution order.
  NoiseSource noise;
  /// The noise level that a conditioned decoder is told; 0.05 is what the reference decodes with.
  float timestep = 0.05f;
  /// Stages "conv_in" and "up_blocks.N".
  StageObserver observer;
};

/// The convolutional decoder: un-normalise, convolution, the block list from its last entry to its
/// first, norm, SiLU, convolution, unpatchify.
/// Source: the reference, video_vae/conv_video_decoder.py:ConvVideoDecoder.
class ConvDecoder final : public VideoDecoder {
 public:
  /// Reads `decoder.*` and `per_channel_statistics.*` below the loader's prefix, or below "vae."
  /// there; `encoder.*` is left to the encoder. Any other tensor beside them, a missing one and one
  /// of another shape is an error that names it, as is a block list whose widths do not divide.
  static absl::StatusOr<std::unique_ptr<ConvDecoder>> Load(
      const checkpoint::VideoDecoderConfig& config, const checkpoint::WeightLoader& loader);

  CompressionFactors factors() const override { return factors_; }
  int64_t latent_channels() const override { return config_.latent_channels; }
  bool timestep_conditioned() const { return config_.timestep_conditioning; }

  /// latent [B, F', H', W', C], normalised -> video [B, F, H, W, 3] in the compute dtype, nominally
  /// in [-1, 1], not clamped. INVALID_ARGUMENT for a latent of another width or an empty one, for
  /// extents too small for the padding mode, and without noise where it is needed.
  absl::StatusOr<Tensor> Decode(const Tensor& latent, const ConvDecodeOptions& options) const;

  /// One unit: the whole clip.
  absl::StatusOr<std::unique_ptr<VideoDecodeSession>> StartDecode(const Tensor& latent,
                                                                  NoiseSource noise) const override;

 private:
  ConvDecoder(Device* device, const checkpoint::VideoDecoderConfig& config, DType dtype)
      : device_(device), config_(config), dtype_(dtype) {}

  absl::Status LoadBlocks(const checkpoint::WeightLoader& decoder, int64_t* width);
  absl::Status LoadConditioning(checkpoint::WeightLoader& decoder, int64_t width);
  absl::Status CheckLatent(const Tensor& latent) const;
  /// Mixes in the latent draw of a conditioned decoder.
  absl::StatusOr<Tensor> AddLatentNoise(const Tensor& latent, const NoiseSource& noise) const;
  /// The last norm, with the conditioning, SiLU and convolution.
  absl::StatusOr<Tensor> ConvOut(Tensor x, float scaled_timestep) const;

  Device* const device_;
  const checkpoint::VideoDecoderConfig config_;
  const DType dtype_;
  CompressionFactors factors_;
  ChannelStatistics statistics_;
  CausalConv3d conv_in_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Norm norm_out_;
  CausalConv3d conv_out_;

  // Only with timestep conditioning.
  float timestep_scale_ = 1.0f;
  TimestepEmbedder last_embedder_;
  /// [2 C]: shift, scale.
  Tensor last_table_;
};

/// Video [F, H, W, 3] nominally in [-1, 1], of any float dtype -> f32 frames
/// clamp((x + 1) / 2, 0, 1). The reference does this in the decoder's dtype; in bf16 that throws
/// away bits which an 8-bit picture still shows, so here it is f32.
absl::StatusOr<Tensor> ToFrames(Device& device, const Tensor& video);

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_CONV_DECODER_H_
