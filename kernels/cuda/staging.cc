#include "kernels/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/memory/memory.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// Device addresses of uploads need no more than a vector load's alignment of their source.
constexpr int64_t kAlignment = 16;
/// One core copies some 10 GB/s, the bus takes five times that.
constexpr int kCopyThreads = 8;
constexpr int64_t kCopyGrain = int64_t{1} << 20;

void CopyInParallel(const uint8_t* from, int64_t bytes, uint8_t* to) {
  static const int threads =
      std::min<int>(kCopyThreads, static_cast<int>(std::thread::hardware_concurrency()));
  cpu::ParallelFor(threads, bytes, kCopyGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(int64_t half_bytes) {
  auto staging = absl::WrapUnique(new Staging(half_bytes));
  for (Half& half : staging->halves_) {
    void* pinned = nullptr;
    LTX_RETURN_IF_CUDA_ERROR(cudaMallocHost(&pinned, static_cast<size_t>(half_bytes)));
    half.data = static_cast<uint8_t*>(pinned);
    LTX_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&half.done, cudaEventDisableTiming));
  }
  LTX_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&staging->switched_, cudaEventDisableTiming));
  return staging;
}

Staging::~Staging() {
  for (const Half& half : halves_) {
    if (half.done != nullptr) {
      cudaEventSynchronize(half.done);
      cudaEventDestroy(half.done);
    }
    if (half.data != nullptr) cudaFreeHost(half.data);
  }
  if (switched_ != nullptr) cudaEventDestroy(switched_);
}

absl::Status Staging::Follow(cudaStream_t stream) {
  if (stream_ != nullptr && stream_ != stream) {
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(switched_, stream_));
    LTX_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream, switched_));
  }
  stream_ = stream;
  return absl::OkStatus();
}

absl::Status Staging::Turn(cudaStream_t stream) {
  LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(halves_[current_].done, stream));
  current_ ^= 1;
  LTX_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(halves_[current_].done));
  halves_[current_].used = 0;
  return absl::OkStatus();
}

absl::Status Staging::Upload(absl::Span<const uint8_t> from, void* to, cudaStream_t stream) {
  LTX_RETURN_IF_ERROR(Follow(stream));
  for (size_t at = 0; at < from.size();) {
    if (half_bytes_ - halves_[current_].used < kAlignment) LTX_RETURN_IF_ERROR(Turn(stream));
    Half& half = halves_[current_];
    const int64_t bytes =
        std::min<int64_t>(half_bytes_ - half.used, static_cast<int64_t>(from.size() - at));
    CopyInParallel(from.data() + at, bytes, half.data + half.used);
    LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(static_cast<uint8_t*>(to) + at, half.data + half.used,
                                             static_cast<size_t>(bytes), cudaMemcpyHostToDevice,
                                             stream));
    half.used += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    at += static_cast<size_t>(bytes);
  }
  return absl::OkStatus();
}

absl::Status Staging::Download(const void* from, absl::Span<uint8_t> to, cudaStream_t stream) {
  LTX_RETURN_IF_ERROR(Follow(stream));
  // Both halves are this copy's: uploads that still read them come first in the stream.
  const auto total = static_cast<int64_t>(to.size());
  const auto chunk_bytes = [&](int64_t at) { return std::min(half_bytes_, total - at); };
  const auto start = [&](int64_t at, Half& half) -> absl::Status {
    LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(half.data, static_cast<const uint8_t*>(from) + at,
                                             static_cast<size_t>(chunk_bytes(at)),
                                             cudaMemcpyDeviceToHost, stream));
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(half.done, stream));
    return absl::OkStatus();
  };
  if (total > 0) LTX_RETURN_IF_ERROR(start(0, halves_[0]));
  for (int64_t at = 0; at < total; at += half_bytes_) {
    Half& half = halves_[(at / half_bytes_) % 2];
    if (at + half_bytes_ < total) {
      LTX_RETURN_IF_ERROR(start(at + half_bytes_, halves_[(at / half_bytes_ + 1) % 2]));
    }
    LTX_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(half.done));
    CopyInParallel(half.data, chunk_bytes(at), to.data() + at);
  }
  LTX_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream));
  for (Half& half : halves_) half.used = 0;
  return absl::OkStatus();
}

}  // namespace ltx::cuda
