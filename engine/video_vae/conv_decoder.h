#ifndef LTX_ENGINE_VIDEO_VAE_CONV_DECODER_H_
#define LTX_ENGINE_VIDEO_VAE_CONV_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/stage_observer.h"
#include "engine/video_vae/block.h"
#include "engine/video_vae/causal_conv3d.h"
#include "engine/video_vae/conv_progress.h"
#include "engine/video_vae/norm.h"
#include "engine/video_vae/resnet_block.h"
#include "engine/video_vae/statistics.h"
#include "engine/video_vae/timestep_embedding.h"
#include "engine/video_vae/upsample_block.h"
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

/// How a long clip is decoded in parts.
struct DecodeParts {
  /// Positions (frames times pixels) of a part at the level where the pictures are largest; a clip
  /// of less than two parts is decoded whole. 0: always whole.
  int64_t positions = 0;

  /// What fills the device: smaller parts would leave a GPU's processors without work at the end of
  /// each operation, larger ones only take more memory and let those wait who encode frames.
  static DecodeParts For(const Device& device);
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
      const checkpoint::VideoDecoderConfig& config, const checkpoint::WeightLoader& loader,
      std::optional<DecodeParts> parts = std::nullopt);

  CompressionFactors factors() const override { return factors_; }
  int64_t latent_channels() const override { return config_.latent_channels; }
  bool timestep_conditioned() const { return config_.timestep_conditioning; }

  /// latent [B, F', H', W', C], normalised -> video [B, F, H, W, 3] in the compute dtype, nominally
  /// in [-1, 1], not clamped. INVALID_ARGUMENT for a latent of another width or an empty one, for
  /// extents too small for the padding mode, and without noise where it is needed.
  absl::StatusOr<Tensor> Decode(const Tensor& latent, const ConvDecodeOptions& options) const;

  /// Of a clip of two parts or more each block up to the last level is a unit, and then each part.
  /// The last level, from the block on that grows pictures last, goes over the clip some frames at
  /// a time, with the bits of the whole: its convolutions look a few frames around, so its frames
  /// are in memory for a moment only, and the first are final long before the last. One unit, the
  /// whole clip, if it is shorter, or if the level has more than plain residual blocks with pixel
  /// norm.
  absl::StatusOr<std::unique_ptr<VideoDecodeSession>> StartDecode(const Tensor& latent,
                                                                  NoiseSource noise) const override;

 private:
  class WholeSession;
  class PartsSession;

  ConvDecoder(Device* device, const checkpoint::VideoDecoderConfig& config, DType dtype,
              const DecodeParts& parts)
      : device_(device), config_(config), dtype_(dtype), parts_(parts) {}

  absl::Status LoadBlocks(const checkpoint::WeightLoader& decoder, int64_t* width);
  absl::Status LoadConditioning(checkpoint::WeightLoader& decoder, int64_t width);
  absl::Status CheckLatent(const Tensor& latent) const;
  /// Mixes in the latent draw of a conditioned decoder.
  absl::StatusOr<Tensor> AddLatentNoise(const Tensor& latent, const NoiseSource& noise) const;
  /// Finds the last level.
  void FindLastLevel();
  BlockContext Context(const ConvDecodeOptions& options) const;
  /// Up to the first convolution.
  absl::StatusOr<Tensor> Begin(const Tensor& latent, const ConvDecodeOptions& options) const;
  /// The last norm, with the conditioning, SiLU, convolution and unpatchify; x is the part `ends`
  /// of a clip.
  absl::StatusOr<Tensor> Finish(Tensor x, float scaled_timestep, const ClipEnds& ends) const;

  Device* const device_;
  const checkpoint::VideoDecoderConfig config_;
  const DType dtype_;
  const DecodeParts parts_;
  CompressionFactors factors_;
  ChannelStatistics statistics_;
  CausalConv3d conv_in_;
  std::vector<std::unique_ptr<Block>> blocks_;
  /// The last level, if it works in parts: the block before it that grows pictures, which is
  /// blocks_[growth_index_], and its residual blocks.
  const UpsampleBlock* growth_ = nullptr;
  size_t growth_index_ = 0;
  std::vector<const ResnetBlock*> last_level_;
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
