#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/bus_rate.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

/// Far above what a copy needs to reach the full rate.
constexpr size_t kCopyBytes = size_t{256} << 20;
constexpr int kCopies = 8;
/// The best of a few: what else is on the bus only makes it slower.
constexpr int kRounds = 3;

absl::Status Check(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", cudaGetErrorString(error)));
}

}  // namespace

absl::StatusOr<double> MeasureBusRate(absl::string_view device) {
  int ordinal = 0;
  absl::string_view number = device;
  if (!absl::ConsumePrefix(&number, "cuda:") || !absl::SimpleAtoi(number, &ordinal)) {
    return absl::UnimplementedError(absl::StrCat("no bus leads to ", device));
  }
  LTX_RETURN_IF_ERROR(Check(cudaSetDevice(ordinal), "cudaSetDevice"));
  void* raw = nullptr;
  LTX_RETURN_IF_ERROR(Check(cudaMallocHost(&raw, kCopyBytes), "cudaMallocHost"));
  const std::unique_ptr<void, cudaError_t (*)(void*)> host(raw, &cudaFreeHost);
  LTX_RETURN_IF_ERROR(Check(cudaMalloc(&raw, kCopyBytes), "cudaMalloc"));
  const std::unique_ptr<void, cudaError_t (*)(void*)> target(raw, &cudaFree);
  double best = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    LTX_RETURN_IF_ERROR(Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCopies; ++i) {
      LTX_RETURN_IF_ERROR(Check(
          cudaMemcpyAsync(target.get(), host.get(), kCopyBytes, cudaMemcpyHostToDevice, nullptr),
          "cudaMemcpyAsync"));
    }
    LTX_RETURN_IF_ERROR(Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(kCopyBytes) * kCopies / took.count());
  }
  return best;
}

}  // namespace ltx::bench
