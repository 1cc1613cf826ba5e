#include "engine/video_vae/patchify.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {

// Both fold batch and frames into one axis: the permutation then has six axes, the most a shape
// holds.

absl::StatusOr<Tensor> Patchify(Device& device, const Tensor& video, int64_t patch_size) {
  const int64_t p = patch_size;
  if (video.rank() != 5 || p < 1) {
    return absl::InternalError(absl::StrCat("patchify: expected [B, F, H, W, C], got ",
                                            video.shape().ToString(), " with patch size ", p));
  }
  const int64_t batch = video.dim(0), frames = video.dim(1), channels = video.dim(4);
  if (video.dim(2) % p != 0 || video.dim(3) % p != 0) {
    return absl::InvalidArgumentError(absl::StrCat("video VAE: height ", video.dim(2),
                                                   " and width ", video.dim(3),
                                                   " must be multiples of the patch size ", p));
  }
  const int64_t height = video.dim(2) / p, width = video.dim(3) / p;
  LTX_ASSIGN_OR_RETURN(const Tensor split,
                       video.Reshape(Shape({batch * frames, height, p, width, p, channels})));
  LTX_ASSIGN_OR_RETURN(const Tensor moved, device.Permute(split, {0, 1, 3, 5, 4, 2}));
  return moved.Reshape(Shape({batch, frames, height, width, channels * p * p}));
}

absl::StatusOr<Tensor> Unpatchify(Device& device, const Tensor& patches, int64_t patch_size) {
  const int64_t p = patch_size;
  if (patches.rank() != 5 || p < 1 || patches.dim(4) % (p * p) != 0) {
    return absl::InternalError(absl::StrCat("unpatchify: expected [B, F, H, W, C p p], got ",
                                            patches.shape().ToString(), " with patch size ", p));
  }
  const int64_t batch = patches.dim(0), frames = patches.dim(1);
  const int64_t height = patches.dim(2), width = patches.dim(3);
  const int64_t channels = patches.dim(4) / (p * p);
  LTX_ASSIGN_OR_RETURN(const Tensor split,
                       patches.Reshape(Shape({batch * frames, height, width, channels, p, p})));
  LTX_ASSIGN_OR_RETURN(const Tensor moved, device.Permute(split, {0, 1, 5, 2, 4, 3}));
  return moved.Reshape(Shape({batch, frames, height * p, width * p, channels}));
}

}  // namespace ltx::video_vae
