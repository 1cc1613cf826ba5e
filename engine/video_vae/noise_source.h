#ifndef LTX_ENGINE_VIDEO_VAE_NOISE_SOURCE_H_
#define LTX_ENGINE_VIDEO_VAE_NOISE_SOURCE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "kernels/tensor.h"

namespace ltx::video_vae {

/// Hands out the next standard-normal draw of `shape`, as a tensor of `dtype` on the decoder's
/// device. The model never draws by itself: who owns the generator decides what a seed means.
/// The shape is in the axis order in which a generator must fill it: a latent draw is
/// [B, C, F', H', W'], a spatial draw [H, W].
using NoiseSource = std::function<absl::StatusOr<Tensor>(const Shape& shape, DType dtype)>;

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_NOISE_SOURCE_H_
