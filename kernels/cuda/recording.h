#ifndef LTX_KERNELS_CUDA_RECORDING_H_
#define LTX_KERNELS_CUDA_RECORDING_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/linear_plans.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/device.h"

namespace ltx::cuda {

/// A CUDA graph of captured work, the pool that its memory lies in, and what was chosen for it.
class GraphRecording final : public Recording {
 public:
  GraphRecording(CudaContext* context, cudaGraphExec_t graph, std::shared_ptr<MemoryPool> pool)
      : context_(context), graph_(graph), pool_(std::move(pool)) {}
  /// Waits for a replay that still runs.
  ~GraphRecording() override;
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;

  cudaGraphExec_t graph() const { return graph_; }
  /// Choices that may yet change, and what holds code that the graph runs.
  void Keep(std::vector<std::shared_ptr<const ProductChoice>> choices,
            std::vector<std::shared_ptr<const void>> code) {
    choices_ = std::move(choices);
    code_ = std::move(code);
  }
  bool outdated() const override;

 private:
  CudaContext* const context_;
  const cudaGraphExec_t graph_;
  const std::shared_ptr<MemoryPool> pool_;
  std::vector<std::shared_ptr<const ProductChoice>> choices_;
  std::vector<std::shared_ptr<const void>> code_;
};

/// Captures what operations issue to a context. All recordings share one pool, since only one runs
/// at a time; it goes with the last of them. What the pool holds stands in the ledger under
/// kRecordings, whether or not a recording runs.
class Recorder {
 public:
  /// `context` must outlive the recorder and every recording.
  explicit Recorder(CudaContext* context);
  ~Recorder();

  absl::StatusOr<std::unique_ptr<GraphRecording>> Record(absl::FunctionRef<absl::Status()> work);
  /// Bytes of each segment of the pool. Any thread may ask, beside Record.
  std::vector<int64_t> segments() const;

 private:
  class LedgerMemory;
  /// The pool of the recordings there are, or a new one.
  std::shared_ptr<MemoryPool> Pool();
  absl::StatusOr<cudaGraph_t> Capture(absl::FunctionRef<absl::Status()> work);

  CudaContext* const context_;
  const std::unique_ptr<LedgerMemory> memory_;
  mutable absl::Mutex mutex_;
  std::weak_ptr<MemoryPool> pool_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_RECORDING_H_
