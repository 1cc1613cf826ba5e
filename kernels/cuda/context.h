#ifndef LTX_KERNELS_CUDA_CONTEXT_H_
#define LTX_KERNELS_CUDA_CONTEXT_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/memory_ledger.h"
#include "kernels/tensor.h"

namespace ltx::cuda {

/// Segments by cudaMalloc of the device that is current.
class CudaHeap final : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Free(void* segment, int64_t bytes) override;
};

/// What the operations of one GPU share: the stream they are issued in, library handles, and
/// memory.
///
/// Every tensor is a block of a pool and stands in the ledger with its own bytes from Allocate
/// until its last reference goes; what pools hold beyond that (free blocks, rounding) is
/// idle_bytes(). Weights and caches have a pool of their own, because blocks that live long would
/// split the segments of those that do not.
class CudaContext {
 public:
  /// `memory` null: the GPU's. Else it must outlive the context. FAILED_PRECONDITION if the device
  /// is older than compute capability 8.0.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(int ordinal, DeviceMemory* memory);
  /// All tensors must be gone.
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  int ordinal() const { return ordinal_; }
  /// "cuda:0".
  const std::string& name() const { return name_; }
  const cudaDeviceProp& properties() const { return properties_; }
  MemoryLedger& ledger() { return ledger_; }

  /// Where work is issued.
  cudaStream_t stream() const { return stream_; }
  /// The lane of stream() as memory pools know it.
  MemoryPool::Lane lane() const { return 0; }
  cublasLtHandle_t cublas_lt() const { return cublas_lt_; }

  /// Makes the device current in the calling thread. Allocate does too; an operation that allocates
  /// nothing calls it first.
  absl::Status MakeCurrent() const;

  absl::StatusOr<Tensor> Allocate(const Shape& shape, DType dtype, MemoryOwner owner);
  /// Scratch for one operation, [bytes] of U8.
  absl::StatusOr<Tensor> Workspace(int64_t bytes);

  /// The status of the kernel launches since the last check; `operation` leads the message.
  absl::Status CheckLaunch(absl::string_view operation) const;

  /// The pool of activations, workspaces and media. Another one may take its place for a while: a
  /// captured graph keeps the memory it was captured with. A block goes back where it came from.
  const std::shared_ptr<MemoryPool>& transient_pool() const { return transient_pool_; }
  void set_transient_pool(std::shared_ptr<MemoryPool> pool) { transient_pool_ = std::move(pool); }
  DeviceMemory& memory() { return *memory_; }

  /// Bytes that the device's two own pools hold and no tensor has.
  int64_t idle_bytes() const;
  /// Gives idle segments back to the driver.
  void Trim();

 private:
  CudaContext(int ordinal, DeviceMemory* memory);

  const int ordinal_;
  const std::string name_;
  CudaHeap heap_;
  DeviceMemory* const memory_;
  MemoryLedger ledger_;
  const std::shared_ptr<MemoryPool> lasting_pool_;
  const std::shared_ptr<MemoryPool> own_transient_pool_;
  std::shared_ptr<MemoryPool> transient_pool_;
  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t cublas_lt_ = nullptr;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CONTEXT_H_
