#include "kernels/cuda/byte_frames.h"
#include "kernels/cuda/map.cuh"
#include "kernels/picture_math.h"

namespace ltx::cuda {
namespace {

constexpr int kThreads = 256;

/// One thread for two by two pixels: what a chroma sample is made of.
__global__ void __launch_bounds__(kThreads)
    ByteFramesKernel(const float* frames, int64_t blocks, int64_t height, int64_t width,
                     uint8_t* rgb, uint8_t* i420) {
  const int64_t block = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const Division row = Divide(block, width / 2);
  const Division frame = Divide(row.quotient, height / 2);
  const int64_t x = 2 * row.remainder;
  const int64_t y = 2 * frame.remainder;
  const int64_t pixels = height * width;
  const YuvMatrixRows rows = Bt709Rows();
  const YuvScale scale = LimitedYuvScale();
  uint8_t* const planes = i420 + frame.quotient * (pixels + pixels / 2);

  float values[2][2][3];
#pragma unroll
  for (int dy = 0; dy < 2; ++dy) {
    const int64_t first = (y + dy) * width + x;
    const int64_t at = 3 * (frame.quotient * pixels + first);
#pragma unroll
    for (int dx = 0; dx < 2; ++dx) {
      float(&p)[3] = values[dy][dx];
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        p[c] = frames[at + 3 * dx + c];
        rgb[at + 3 * dx + c] = UnitToByte(p[c]);
      }
      planes[first + dx] =
          TruncateToByte(DotRgb(rows.y, p[0], p[1], p[2]) * scale.y_gain + scale.y_offset);
    }
  }
  float mean[3];
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    mean[c] = MeanOfFour(values[0][0][c], values[0][1][c], values[1][0][c], values[1][1][c]);
  }
  uint8_t* const chroma = planes + pixels + frame.remainder * (width / 2) + row.remainder;
  chroma[0] =
      TruncateToByte(DotRgb(rows.cb, mean[0], mean[1], mean[2]) * scale.c_gain + scale.c_offset);
  chroma[pixels / 4] =
      TruncateToByte(DotRgb(rows.cr, mean[0], mean[1], mean[2]) * scale.c_gain + scale.c_offset);
}

}  // namespace

void LaunchByteFrames(const float* frames, int64_t count, int64_t height, int64_t width,
                      uint8_t* rgb, uint8_t* i420, cudaStream_t stream) {
  const int64_t blocks = count * height * width / 4;
  if (blocks == 0) return;
  const auto grid = static_cast<unsigned>((blocks + kThreads - 1) / kThreads);
  ByteFramesKernel<<<grid, kThreads, 0, stream>>>(frames, blocks, height, width, rgb, i420);
}

}  // namespace ltx::cuda
