#include <cstdint>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/layout_shapes.h"
#include "kernels/picture_math.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// A frame, and where its forms in bytes begin.
struct FrameTask {
  const float* pixels;
  uint8_t* rgb;
  uint8_t* y;
  uint8_t* cb;
  uint8_t* cr;
};

/// Rows 2 pair and 2 pair + 1.
void PackRowPair(const FrameTask& frame, int64_t pair, int64_t width) {
  constexpr YuvMatrixRows kRows = Bt709Rows();
  constexpr YuvScale kScale = LimitedYuvScale();
  const float* const top = frame.pixels + 6 * pair * width;
  const float* const bottom = top + 3 * width;
  uint8_t* const rgb = frame.rgb + 6 * pair * width;
  uint8_t* const y = frame.y + 2 * pair * width;
  for (int64_t i = 0; i < 6 * width; ++i) rgb[i] = UnitToByte(top[i]);
  for (int64_t i = 0; i < 2 * width; ++i) {
    const float* const p = top + 3 * i;
    y[i] = TruncateToByte(DotRgb(kRows.y, p[0], p[1], p[2]) * kScale.y_gain + kScale.y_offset);
  }
  for (int64_t x = 0; x < width / 2; ++x) {
    float mean[3];
    for (int c = 0; c < 3; ++c) {
      mean[c] =
          MeanOfFour(top[6 * x + c], top[6 * x + 3 + c], bottom[6 * x + c], bottom[6 * x + 3 + c]);
    }
    const int64_t at = pair * (width / 2) + x;
    frame.cb[at] = TruncateToByte(DotRgb(kRows.cb, mean[0], mean[1], mean[2]) * kScale.c_gain +
                                  kScale.c_offset);
    frame.cr[at] = TruncateToByte(DotRgb(kRows.cr, mean[0], mean[1], mean[2]) * kScale.c_gain +
                                  kScale.c_offset);
  }
}

}  // namespace

absl::StatusOr<ByteFrames> CpuDevice::ToByteFrames(const Tensor& frames, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(const Shape i420, I420Shape(frames));
  const int64_t height = frames.dim(1);
  const int64_t width = frames.dim(2);
  ByteFrames bytes;
  LTX_ASSIGN_OR_RETURN(bytes.rgb, Allocate(frames.shape(), DType::kU8, owner));
  LTX_ASSIGN_OR_RETURN(bytes.i420, Allocate(i420, DType::kU8, owner));
  const int64_t pixels = height * width;
  ParallelFor(threads_, frames.dim(0) * height / 2, RowGrain(kCheapGrain, 6 * width),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const int64_t f = row / (height / 2);
                  uint8_t* const planes = bytes.i420.data<uint8_t>() + f * pixels * 3 / 2;
                  const FrameTask frame = {frames.data<float>() + 3 * f * pixels,
                                           bytes.rgb.data<uint8_t>() + 3 * f * pixels, planes,
                                           planes + pixels, planes + pixels + pixels / 4};
                  PackRowPair(frame, row % (height / 2), width);
                }
              });
  return bytes;
}

}  // namespace ltx::cpu
