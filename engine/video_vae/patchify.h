#ifndef LTX_ENGINE_VIDEO_VAE_PATCHIFY_H_
#define LTX_ENGINE_VIDEO_VAE_PATCHIFY_H_

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// Moves square pixel patches into channels and back. Channel order of a patch: (c, column, row),
/// columns before rows: out[(c * p + column) * p + row] = in[c] at (p h + row, p w + column).
/// Source: the reference, video_vae/ops.py.

/// [B, F, H p, W p, C] -> [B, F, H, W, C p p]; any dtype. INVALID_ARGUMENT if the height or width
/// is no multiple of `patch_size`.
absl::StatusOr<Tensor> Patchify(Device& device, const Tensor& video, int64_t patch_size);

/// [B, F, H, W, C p p] -> [B, F, H p, W p, C]; any dtype.
absl::StatusOr<Tensor> Unpatchify(Device& device, const Tensor& patches, int64_t patch_size);

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_PATCHIFY_H_
