#ifndef LTX_ENGINE_VIDEO_VAE_CAUSAL_CONV3D_H_
#define LTX_ENGINE_VIDEO_VAE_CAUSAL_CONV3D_H_

#include <array>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/video_vae/conv_progress.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// The device's name for a padding mode of the config.
PadMode ToPadMode(checkpoint::SpatialPadding padding);

struct CausalConv3dOptions {
  /// Extent of the cubic kernel, odd.
  int64_t kernel = 3;
  /// Over [T, H, W].
  std::array<int64_t, 3> stride = {1, 1, 1};
  /// How H and W see their outside; the temporal rule does not depend on it.
  PadMode spatial_padding = PadMode::kZeros;
};

/// The convolution of the video VAE. Time is padded by copies of the border frames, never by zeros:
/// with kernel k, a causal convolution sees the first frame k - 1 more times in front; a
/// non-causal one (k - 1) / 2 more copies of the first frame in front and of the last one behind.
/// H and W are padded by k / 2 on both sides.
/// Source: the reference, video_vae/convolution.py:CausalConv3d.
class CausalConv3d {
 public:
  CausalConv3d() = default;

  /// Reads `module`.weight [out, in, k, k, k] and `module`.bias [out].
  static absl::StatusOr<CausalConv3d> Load(checkpoint::WeightLoader& loader,
                                           absl::string_view module, int64_t in, int64_t out,
                                           const CausalConv3dOptions& options);

  /// x [B, T, H, W, in] -> [B, T', H', W', out]; at stride 1 the extents stay. `around` says what
  /// else is done on the way. `residual`, if defined, has the convolution's shape and is added to
  /// it. `ends` says which part of a clip x is; T' is short of the frames that are not padded.
  /// INVALID_ARGUMENT if H or W is too small for the padding mode.
  absl::StatusOr<Tensor> Forward(Device& device, Tensor x, bool causal,
                                 const NormConvOptions& around = {}, Tensor residual = Tensor(),
                                 const ClipEnds& ends = {}) const;

 private:
  ConvWeight weight_;
  CausalConv3dOptions options_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_CAUSAL_CONV3D_H_
