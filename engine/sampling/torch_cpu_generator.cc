#include "engine/sampling/torch_cpu_generator.h"

#include <cmath>
#include <cstring>

#include "kernels/status_macros.h"

// Every result here depends on which products are fused into an addition and which are rounded on
// their own. Fused ones are written std::fma; this file must be compiled without contraction.

namespace ltx::sampling {
namespace {

// Draws of this size and above use blocks of this size.
constexpr int64_t kBlock = 16;
constexpr int64_t kHalf = kBlock / 2;
constexpr double kTwoPi = 6.283185307179586476925286766559;

uint64_t Next64(std::mt19937& engine) {
  const uint64_t high = engine();
  return (high << 32) | engine();
}

double UniformDouble(std::mt19937& engine) {
  constexpr uint64_t kMantissa = (uint64_t{1} << 53) - 1;
  return static_cast<double>(Next64(engine) & kMantissa) * 0x1p-53;
}

// Natural logarithm for 0 < x <= 1: the Cephes polynomial in the form of the avx_mathfun library.
float Log(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  bits = (bits & 0x007fffffu) | 0x3f000000u;
  float m;
  std::memcpy(&m, &bits, sizeof(m));
  if (m < 0.707106781186547524f) {
    e -= 1.0f;
    m = (m - 1.0f) + m;
  } else {
    m = m - 1.0f;
  }
  constexpr float kCoefficients[] = {-1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f,
                                     1.4249322787e-1f,  -1.6668057665e-1f, 2.0000714765e-1f,
                                     -2.4999993993e-1f, 3.3333331174e-1f};
  const float z = m * m;
  float y = 7.0376836292e-2f;
  for (const float c : kCoefficients) y = std::fma(y, m, c);
  y = y * m;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-0.5f, z, y);
  return std::fma(e, 0.693359375f, m + y);
}

// Sine and cosine for 0 <= x <= 2 pi, from the same source.
void SinCos(float x, float* sine, float* cosine) {
  const int32_t j = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const auto octant = static_cast<float>(j);
  x = std::fma(octant, -0.78515625f, x);
  x = std::fma(octant, -2.4187564849853515625e-4f, x);
  x = std::fma(octant, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = c * z;
  c = std::fma(c, z, -0.5f * z);
  c = c + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = s * z;
  s = std::fma(s, x, x);
  const bool swap = (j & 2) != 0;
  const bool negative_sine = (j & 4) != 0;
  const bool negative_cosine = (j & 6) == 2 || (j & 6) == 4;
  *sine = swap ? c : s;
  *cosine = swap ? s : c;
  if (negative_sine) *sine = -*sine;
  if (negative_cosine) *cosine = -*cosine;
}

// One policy per dtype: a uniform of the stream, and Box-Muller on a pair of uniforms. The mean of
// zero that is added at the end turns -0 into +0.
struct Float32Normals {
  using Value = float;
  static float Uniform(std::mt19937& engine) {
    return static_cast<float>(engine() & 0xffffffu) * 0x1p-24f;
  }
  static void Transform(float* a, float* b) {
    const float radius = std::sqrt(-2.0f * Log(1.0f - *a));
    float sine, cosine;
    SinCos(6.2831855f * *b, &sine, &cosine);
    *a = radius * cosine + 0.0f;
    *b = radius * sine + 0.0f;
  }
};

struct Float64Normals {
  using Value = double;
  static double Uniform(std::mt19937& engine) { return UniformDouble(engine); }
  static void Transform(double* a, double* b) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - *a));
    const double angle = kTwoPi * *b;
    *a = radius * std::cos(angle) + 0.0;
    *b = radius * std::sin(angle) + 0.0;
  }
};

struct BFloat16Normals {
  using Value = float;
  static float Uniform(std::mt19937& engine) {
    return static_cast<float>(engine() & 0xffu) * 0x1p-8f;
  }
  static void Transform(float* a, float* b) {
    const float u = RoundToBFloat16(1.0f - *a);
    const float log = RoundToBFloat16(std::log(u));
    const float radius = RoundToBFloat16(std::sqrt(RoundToBFloat16(-2.0f * log)));
    const float angle = RoundToBFloat16(static_cast<float>(kTwoPi * *b));
    *a = RoundToBFloat16(radius * RoundToBFloat16(std::cos(angle))) + 0.0f;
    *b = RoundToBFloat16(radius * RoundToBFloat16(std::sin(angle))) + 0.0f;
  }
};

template <typename Normals>
std::vector<typename Normals::Value> DrawBlocks(std::mt19937& engine, int64_t count) {
  std::vector<typename Normals::Value> values(count);
  const auto transform = [&](int64_t begin) {
    for (int64_t k = begin; k < begin + kHalf; ++k) {
      Normals::Transform(&values[k], &values[k + kHalf]);
    }
  };
  for (auto& value : values) value = Normals::Uniform(engine);
  for (int64_t begin = 0; begin + kBlock <= count; begin += kBlock) transform(begin);
  if (count % kBlock != 0) {
    // The last block is drawn afresh and overlaps finished values.
    for (int64_t k = count - kBlock; k < count; ++k) values[k] = Normals::Uniform(engine);
    transform(count - kBlock);
  }
  return values;
}

}  // namespace

TorchCpuGenerator::TorchCpuGenerator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

double TorchCpuGenerator::NextSmall() {
  if (pending_.has_value()) {
    const double value = *pending_;
    pending_.reset();
    return value;
  }
  const double angle = kTwoPi * UniformDouble(engine_);
  const double radius = std::sqrt(-2.0 * std::log1p(-UniformDouble(engine_)));
  pending_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

absl::StatusOr<std::vector<float>> TorchCpuGenerator::Draw(int64_t count, DType dtype) {
  LTX_RETURN_IF_ERROR(CheckDraw(count, dtype));
  if (dtype == DType::kF64) return absl::InvalidArgumentError("F64 noise needs DrawDoubles");
  if (count >= kBlock) {
    return dtype == DType::kBF16 ? DrawBlocks<BFloat16Normals>(engine_, count)
                                 : DrawBlocks<Float32Normals>(engine_, count);
  }
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(NextSmall());
    if (dtype == DType::kBF16) value = RoundToBFloat16(value);
  }
  return values;
}

absl::StatusOr<std::vector<double>> TorchCpuGenerator::DrawDoubles(int64_t count) {
  LTX_RETURN_IF_ERROR(CheckDraw(count, DType::kF64));
  if (count >= kBlock) return DrawBlocks<Float64Normals>(engine_, count);
  std::vector<double> values(count);
  for (double& value : values) value = NextSmall();
  return values;
}

}  // namespace ltx::sampling
