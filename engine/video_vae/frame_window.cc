#include "engine/video_vae/frame_window.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {

absl::StatusOr<Tensor> FramesOf(const Tensor& x, int64_t begin, int64_t end) {
  if (x.rank() != 5 || x.dim(0) != 1) {
    return absl::InternalError(
        absl::StrCat("frames of one clip [1, T, H, W, C], got ", x.shape().ToString()));
  }
  if (begin == 0 && end == x.dim(1)) return x;
  LTX_ASSIGN_OR_RETURN(const Tensor frames, x.Reshape(Shape(x.shape().dims().subspan(1))));
  LTX_ASSIGN_OR_RETURN(const Tensor rows, frames.Rows(begin, end));
  Shape shape = x.shape();
  shape.set_dim(1, end - begin);
  return rows.Reshape(shape);
}

absl::StatusOr<FrameWindow> FrameWindow::Create(Device& device, const Shape& frame, DType dtype,
                                                int64_t capacity, int64_t begin) {
  FrameWindow window;
  LTX_ASSIGN_OR_RETURN(window.memory_,
                       device.Allocate({1, capacity, frame.dim(0), frame.dim(1), frame.dim(2)},
                                       dtype, MemoryOwner::kActivations));
  window.begin_ = window.end_ = begin;
  return window;
}

absl::StatusOr<Tensor> FrameWindow::Frames(int64_t begin, int64_t end) const {
  if (begin < begin_ || end < begin || end > end_) {
    return absl::InternalError(absl::StrCat("frames ", begin, " to ", end,
                                            " of a window that holds ", begin_, " to ", end_));
  }
  return FramesOf(memory_, begin - begin_, end - begin_);
}

absl::StatusOr<Tensor> FrameWindow::Append(Device& device, int64_t count, int64_t keep_from) {
  const int64_t capacity = memory_.defined() ? memory_.dim(1) : 0;
  if (end_ + count - begin_ > capacity) {
    const int64_t dropped = std::clamp(keep_from, begin_, end_) - begin_;
    const int64_t kept = end_ - begin_ - dropped;
    if (kept + count > capacity) {
      return absl::InternalError(absl::StrCat("a window of ", capacity, " frames that keeps ", kept,
                                              " has no room for ", count, " more"));
    }
    // Not more at a time than were dropped, so that no copy overlaps itself.
    for (int64_t done = 0; done < kept; done += dropped) {
      const int64_t end = std::min(done + dropped, kept);
      LTX_ASSIGN_OR_RETURN(const Tensor from, FramesOf(memory_, dropped + done, dropped + end));
      LTX_ASSIGN_OR_RETURN(Tensor to, FramesOf(memory_, done, end));
      LTX_RETURN_IF_ERROR(device.Copy(from, &to));
    }
    begin_ += dropped;
  }
  end_ += count;
  return FramesOf(memory_, end_ - count - begin_, end_ - begin_);
}

}  // namespace ltx::video_vae
