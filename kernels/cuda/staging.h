#ifndef LTX_KERNELS_CUDA_STAGING_H_
#define LTX_KERNELS_CUDA_STAGING_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ltx::cuda {

/// Copies between ordinary host memory and the device through two halves of pinned memory: while
/// one half travels, the other is filled or emptied. Small uploads share a half and do not wait.
class Staging {
 public:
  /// Pins twice `half_bytes`. RESOURCE_EXHAUSTED if the host has no such memory to pin.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(int64_t half_bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Enqueues the copy; `from` may be released when this returns.
  absl::Status Upload(absl::Span<const uint8_t> from, void* to, cudaStream_t stream);
  /// Returns when `to` is filled, and so everything before it in the stream is done.
  absl::Status Download(const void* from, absl::Span<uint8_t> to, cudaStream_t stream);

 private:
  struct Half {
    uint8_t* data = nullptr;
    int64_t used = 0;
    /// Recorded behind the last copy that reads or writes the half.
    cudaEvent_t done = nullptr;
  };

  explicit Staging(int64_t half_bytes) : half_bytes_(half_bytes) {}
  /// Makes all copies one sequence, whichever streams they are issued to.
  absl::Status Follow(cudaStream_t stream);
  /// Turns to the other half once its last copy is done.
  absl::Status Turn(cudaStream_t stream);

  const int64_t half_bytes_;
  std::array<Half, 2> halves_;
  int current_ = 0;
  /// Of the last copy, and what makes another stream wait for it.
  cudaStream_t stream_ = nullptr;
  cudaEvent_t switched_ = nullptr;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_STAGING_H_
