#include "engine/sampling/torch_cuda_generator.h"

#include <algorithm>
#include <cmath>

#include "engine/sampling/philox.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

// Threads of one block, and the step of the offset per round: one counter yields four words.
constexpr int64_t kThreadsPerBlock = 256;
constexpr uint64_t kWordsPerCounter = 4;

// cuRAND's 2^-32 and 2^-32 * 2 pi, in float.
constexpr float kInverse32 = 2.3283064e-10f;
constexpr float kInverse32TwoPi = 2.3283064e-10f * 6.2831855f;
constexpr double kPi = 3.14159265358979323846;

void BoxMuller(uint32_t a, uint32_t b, float* even, float* odd) {
  const float u = std::fma(static_cast<float>(a), kInverse32, kInverse32 / 2);
  const float v = std::fma(static_cast<float>(b), kInverse32TwoPi, kInverse32TwoPi / 2);
  const float radius = std::sqrt(-2.0f * std::log(u));
  *even = radius * std::sin(v);
  *odd = radius * std::cos(v);
}

void BoxMullerDouble(const std::array<uint32_t, 4>& w, double* even, double* odd) {
  const uint64_t a = w[0] ^ (uint64_t{w[1]} << 21);
  const uint64_t b = w[2] ^ (uint64_t{w[3]} << 21);
  const double u = static_cast<double>(a) * 0x1p-53 + 0x1p-54;
  const double v = static_cast<double>(b) * 0x1p-52 + 0x1p-53;
  const double radius = std::sqrt(-2.0 * std::log(u));
  *even = radius * std::sin(kPi * v);
  *odd = radius * std::cos(kPi * v);
}

}  // namespace

TorchCudaGenerator::TorchCudaGenerator(uint64_t seed, const CudaLaunchShape& shape, Device* device)
    : seed_(seed),
      shape_(shape),
      device_(device != nullptr && device->can_draw_philox() ? device : nullptr) {}

std::array<uint32_t, 4> TorchCudaGenerator::Words(uint64_t offset, uint64_t thread,
                                                  uint64_t round) const {
  const uint64_t counter = offset / kWordsPerCounter + round;
  return Philox4x32({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                     static_cast<uint32_t>(thread), static_cast<uint32_t>(thread >> 32)},
                    {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
}

TorchCudaGenerator::Launch TorchCudaGenerator::LaunchFor(int64_t count,
                                                         int values_per_counter) const {
  if (count == 0) return {0, 0};
  const int64_t blocks_at_once =
      shape_.multiprocessors * (shape_.threads_per_multiprocessor / kThreadsPerBlock);
  const int64_t blocks =
      std::min((count + kThreadsPerBlock - 1) / kThreadsPerBlock, blocks_at_once);
  const int64_t threads = blocks * kThreadsPerBlock;
  return {threads, (count - 1) / (threads * values_per_counter) + 1};
}

template <typename Value, int kPerCounter, typename Transform>
std::vector<Value> TorchCudaGenerator::DrawOnHost(int64_t count, const Launch& launch,
                                                  const Transform& transform) {
  std::vector<Value> values(count);
  for (int64_t round = 0; round < launch.rounds; ++round) {
    const int64_t base = launch.threads * kPerCounter * round;
    for (int64_t thread = 0; thread < launch.threads && base + thread < count; ++thread) {
      std::array<Value, kPerCounter> normals;
      transform(Words(offset_, thread, round), &normals);
      for (int i = 0; i < kPerCounter; ++i) {
        const int64_t index = base + thread + launch.threads * i;
        if (index < count) values[index] = normals[i];
      }
    }
  }
  return values;
}

template <typename Value>
absl::StatusOr<std::vector<Value>> TorchCudaGenerator::DrawOnDevice(int64_t count, DType dtype) {
  const PhiloxDraw draw = {seed_, offset_, count, shape_.multiprocessors,
                           shape_.threads_per_multiprocessor};
  LTX_ASSIGN_OR_RETURN(const Tensor normals, device_->PhiloxNormals(draw, dtype));
  std::vector<Value> values(count);
  auto* bytes = reinterpret_cast<uint8_t*>(values.data());
  LTX_RETURN_IF_ERROR(device_->Download(normals, absl::MakeSpan(bytes, count * sizeof(Value))));
  return values;
}

absl::StatusOr<std::vector<float>> TorchCudaGenerator::Draw(int64_t count, DType dtype) {
  LTX_RETURN_IF_ERROR(CheckDraw(count, dtype));
  if (dtype == DType::kF64) return absl::InvalidArgumentError("F64 noise needs DrawDoubles");
  constexpr int kPerCounter = 4;
  const Launch launch = LaunchFor(count, kPerCounter);
  std::vector<float> values;
  if (device_ != nullptr) {
    LTX_ASSIGN_OR_RETURN(values, DrawOnDevice<float>(count, DType::kF32));
  } else {
    values = DrawOnHost<float, kPerCounter>(
        count, launch, [](const std::array<uint32_t, 4>& w, std::array<float, 4>* normals) {
          BoxMuller(w[0], w[1], &(*normals)[0], &(*normals)[1]);
          BoxMuller(w[2], w[3], &(*normals)[2], &(*normals)[3]);
        });
  }
  offset_ += static_cast<uint64_t>(launch.rounds) * kWordsPerCounter;
  if (dtype == DType::kBF16) {
    for (float& value : values) value = RoundToBFloat16(value);
  }
  return values;
}

absl::StatusOr<std::vector<double>> TorchCudaGenerator::DrawDoubles(int64_t count) {
  LTX_RETURN_IF_ERROR(CheckDraw(count, DType::kF64));
  constexpr int kPerCounter = 2;
  const Launch launch = LaunchFor(count, kPerCounter);
  std::vector<double> values;
  if (device_ != nullptr) {
    LTX_ASSIGN_OR_RETURN(values, DrawOnDevice<double>(count, DType::kF64));
  } else {
    values = DrawOnHost<double, kPerCounter>(
        count, launch, [](const std::array<uint32_t, 4>& w, std::array<double, 2>* normals) {
          BoxMullerDouble(w, &(*normals)[0], &(*normals)[1]);
        });
  }
  offset_ += static_cast<uint64_t>(launch.rounds) * kWordsPerCounter;
  return values;
}

}  // namespace ltx::sampling
