#ifndef LTX_KERNELS_CUDA_CONTEXT_H_
#define LTX_KERNELS_CUDA_CONTEXT_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/pool_lanes.h"
#include "kernels/cuda/staging.h"
#include "kernels/memory_ledger.h"
#include "kernels/tensor.h"

namespace ltx::cuda {

/// Segments by cudaMalloc of the device that is current.
class CudaHeap final : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Free(void* segment, int64_t bytes) override;
};

/// What the operations of one GPU share: the streams they are issued in, library handles, and
/// memory.
///
/// Work goes to the main lane; between Fork and Join it may go to a side lane as well, which the
/// device runs beside it.
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

  /// Where work is issued: the stream of the current lane, behind the uploads that other threads
  /// were to issue there.
  cudaStream_t stream() const {
    staging_->Settle();
    return upload_stream();
  }
  /// The same stream for uploads, which do not wait for each other.
  cudaStream_t upload_stream() const { return streams_[lane()]; }
  Staging& staging() { return *staging_; }
  /// The lane of stream() as memory pools know it.
  MemoryPool::Lane lane() const { return lanes_.lane(); }

  /// The side lane waits for what the main one has been given, and is idle until UseSideLane.
  /// FAILED_PRECONDITION if it is forked already.
  absl::Status Fork();
  /// Work goes to the side lane from now on.
  void UseSideLane() {
    staging_->Settle();
    lanes_.UseSide();
  }
  /// Work goes to the main lane, which waits for the side lane.
  absl::Status Join();

  cublasLtHandle_t cublas_lt() const { return cublas_lt_; }

  /// Makes the device current in the calling thread. Allocate does too; an operation that allocates
  /// nothing calls it first.
  absl::Status MakeCurrent() const;

  absl::StatusOr<Tensor> Allocate(const Shape& shape, DType dtype, MemoryOwner owner);
  /// Scratch for one operation, [bytes] of U8.
  absl::StatusOr<Tensor> Workspace(int64_t bytes);

  /// The status of the kernel launches since the last check; `operation` leads the message.
  absl::Status CheckLaunch(absl::string_view operation) const;

  /// Activations, workspaces and media come from `pool` from now on, uncounted: a captured graph
  /// keeps the memory it was captured with, and who keeps the graph accounts for it. Null: from the
  /// device's own pool again. A block goes back where it came from.
  void UseRecordingPool(std::shared_ptr<MemoryPool> pool) { recording_pool_ = std::move(pool); }
  DeviceMemory& memory() { return *memory_; }

  /// Bytes that the device's two own pools hold and no tensor has.
  int64_t idle_bytes() const;
  /// Gives idle segments back to the driver.
  void Trim();

 private:
  class PooledStorage;

  CudaContext(int ordinal, DeviceMemory* memory);
  const std::shared_ptr<MemoryPool>& TransientPool() const {
    return recording_pool_ == nullptr ? transient_pool_ : recording_pool_;
  }

  const int ordinal_;
  const std::string name_;
  CudaHeap heap_;
  DeviceMemory* const memory_;
  MemoryLedger ledger_;
  const std::shared_ptr<MemoryPool> lasting_pool_;
  const std::shared_ptr<MemoryPool> transient_pool_;
  std::shared_ptr<MemoryPool> recording_pool_;
  cudaDeviceProp properties_{};
  std::array<cudaStream_t, 2> streams_{};
  /// Marks the fork in the main lane and the end of the side lane.
  std::array<cudaEvent_t, 2> events_{};
  PoolLanes lanes_;
  cublasLtHandle_t cublas_lt_ = nullptr;
  std::unique_ptr<Staging> staging_;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CONTEXT_H_
