#ifndef LTX_KERNELS_PICTURE_MATH_H_
#define LTX_KERNELS_PICTURE_MATH_H_

#include <cstdint>

#if defined(__CUDACC__)
#define LTX_HOST_DEVICE __host__ __device__
#else
#define LTX_HOST_DEVICE
#endif

namespace ltx {

/// The arithmetic of 8-bit pictures, written once for hosts and GPUs. The bits are the same
/// everywhere as long as a * b + c is two roundings, as these packages are compiled.

/// Rows of a matrix from R, G, B to luma and the two colour differences.
struct YuvMatrixRows {
  float y[3];
  float cb[3];
  float cr[3];
};
/// BT.709 with the reference's four-digit constants (color/yuv.py).
LTX_HOST_DEVICE constexpr YuvMatrixRows Bt709Rows() {
  return {{0.2126f, 0.7152f, 0.0722f}, {-0.1146f, -0.3854f, 0.5f}, {0.5f, -0.4542f, -0.0458f}};
}

/// From [0, 1] and [-0.5, 0.5] to the 8-bit scale.
struct YuvScale {
  float y_gain;
  float y_offset;
  float c_gain;
  float c_offset;
};
/// Luma 16..235, chroma 16..240 around 128.
LTX_HOST_DEVICE constexpr YuvScale LimitedYuvScale() { return {219.0f, 16.0f, 224.0f, 128.0f}; }
/// 0..255; chroma is centred at 127.5, as the reference has it: (c + 0.5) * 255.
LTX_HOST_DEVICE constexpr YuvScale FullYuvScale() { return {255.0f, 0.0f, 255.0f, 127.5f}; }

/// One row of a matrix, applied.
LTX_HOST_DEVICE inline float DotRgb(const float (&row)[3], float r, float g, float b) {
  return row[0] * r + row[1] * g + row[2] * b;
}

LTX_HOST_DEVICE inline float MeanOfFour(float a, float b, float c, float d) {
  return 0.25f * ((a + b) + (c + d));
}

/// Into [0, high], NaN to 0: a comparison with NaN is false. Values instead of std::clamp's
/// references let compilers make vector code of loops over it.
LTX_HOST_DEVICE inline float ClampFromZero(float value, float high) {
  const float floored = value > 0.0f ? value : 0.0f;
  return floored < high ? floored : high;
}

/// By truncation, as the reference writes 8-bit pictures; the step over int is for vector code.
LTX_HOST_DEVICE inline uint8_t TruncateToByte(float value) {
  return static_cast<uint8_t>(static_cast<int>(ClampFromZero(value, 255.0f)));
}
/// [0, 1] to 0..255.
LTX_HOST_DEVICE inline uint8_t UnitToByte(float value) {
  return TruncateToByte(ClampFromZero(value, 1.0f) * 255.0f);
}

}  // namespace ltx

#endif  // LTX_KERNELS_PICTURE_MATH_H_
