#ifndef LTX_ENGINE_CHECKPOINT_VIDEO_VAE_CONFIG_H_
#define LTX_ENGINE_CHECKPOINT_VIDEO_VAE_CONFIG_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

enum class VideoBlockKind {
  /// n residual blocks.
  kResX,
  /// One residual block that changes the channels.
  kResXY,
  kAttn,
  /// Encoder: strided convolution. Decoder: depth to space.
  kCompressSpace,
  kCompressTime,
  kCompressAll,
  /// Encoder only: space to depth with a residual.
  kCompressSpaceRes,
  kCompressTimeRes,
  kCompressAllRes,
  /// Encoder only: strided convolution that multiplies the channels.
  kCompressAllXY,
};

/// The name in a block list, e.g. "compress_space_res".
absl::string_view VideoBlockName(VideoBlockKind kind);

struct VideoBlock {
  VideoBlockKind kind = VideoBlockKind::kResX;
  /// kResX.
  int64_t num_layers = 1;
  /// By how much the channels grow (encoder) or shrink (decoder).
  int64_t multiplier = 1;
  /// Decoder kResX and kResXY.
  bool inject_noise = false;
  /// Decoder kCompressAll.
  bool residual = false;
};

enum class VideoNorm { kPixelNorm, kGroupNorm };
enum class SpatialPadding { kZeros, kReflect, kReplicate, kCircular };
/// Which log-variance channels the encoder's last convolution has beside the means.
enum class LatentLogVar { kPerChannel, kUniform, kConstant, kNone };

struct VideoEncoderConfig {
  int64_t in_channels = 3;
  int64_t latent_channels = 128;
  /// Pixel side first.
  std::vector<VideoBlock> blocks;
  int64_t patch_size = 4;
  VideoNorm norm = VideoNorm::kPixelNorm;
  LatentLogVar latent_log_var = LatentLogVar::kUniform;
  SpatialPadding spatial_padding = SpatialPadding::kZeros;

  /// Channels of `conv_out`.
  int64_t conv_out_channels() const;
  /// Pixels per latent cell along one spatial axis, and frames per latent frame.
  int64_t spatial_factor() const;
  int64_t temporal_factor() const;
};

struct VideoDecoderConfig {
  int64_t latent_channels = 128;
  int64_t out_channels = 3;
  /// As in the file: pixel side first. The decoder runs them from the last to the first.
  std::vector<VideoBlock> blocks;
  /// Width at the pixel end.
  int64_t base_channels = 128;
  int64_t patch_size = 4;
  VideoNorm norm = VideoNorm::kPixelNorm;
  bool causal = false;
  bool timestep_conditioning = true;
  SpatialPadding spatial_padding = SpatialPadding::kReflect;

  /// Width at the latent end: base_channels times all multipliers.
  int64_t bottleneck_channels() const;
  int64_t spatial_factor() const;
  int64_t temporal_factor() const;
};

/// Reads the encoder from `config["vae"]`: flat in convolutional files, in `encoder` in diffusion
/// ones. INVALID_ARGUMENT names key, value and what is legal.
absl::StatusOr<VideoEncoderConfig> ParseVideoEncoderConfig(const nlohmann::json& config);

/// Reads the convolutional decoder from `config["vae"]`. UNIMPLEMENTED if `_class_name` is that of
/// a diffusion decoder.
absl::StatusOr<VideoDecoderConfig> ParseVideoDecoderConfig(const nlohmann::json& config);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_VIDEO_VAE_CONFIG_H_
