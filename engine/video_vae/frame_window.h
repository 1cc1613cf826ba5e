#ifndef LTX_ENGINE_VIDEO_VAE_FRAME_WINDOW_H_
#define LTX_ENGINE_VIDEO_VAE_FRAME_WINDOW_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace ltx::video_vae {

/// View of frames [begin, end) of a clip x [1, T, H, W, C]. INTERNAL if out of range or if there
/// are more clips than one.
absl::StatusOr<Tensor> FramesOf(const Tensor& x, int64_t begin, int64_t end);

/// The frames of a clip that somebody still needs, in memory for a limited number of them: new ones
/// come in behind the last, those in front go when room is needed.
class FrameWindow {
 public:
  /// Over nothing.
  FrameWindow() = default;
  /// All frames of x [1, T, H, W, C], in its memory.
  explicit FrameWindow(Tensor x) : memory_(std::move(x)), end_(memory_.dim(1)) {}
  /// Empty, with room for `capacity` frames of shape [H, W, C]; `begin` is the number of the first.
  static absl::StatusOr<FrameWindow> Create(Device& device, const Shape& frame, DType dtype,
                                            int64_t capacity, int64_t begin = 0);

  /// Frames [begin(), end()) are there.
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

  /// View [1, n, H, W, C] of frames that are there; it holds until the next Append. INTERNAL if
  /// they are not.
  absl::StatusOr<Tensor> Frames(int64_t begin, int64_t end) const;
  /// Memory for the next `count` frames, for the caller to fill. Frames before `keep_from` may be
  /// given up for it. INTERNAL if the others leave no room.
  absl::StatusOr<Tensor> Append(Device& device, int64_t count, int64_t keep_from);

 private:
  Tensor memory_;
  /// Of the frame that lies first in the memory.
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_FRAME_WINDOW_H_
