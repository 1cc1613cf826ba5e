#include "kernels/cuda/recording.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

GraphRecording::~GraphRecording() {
  cudaStreamSynchronize(context_->stream());
  cudaGraphExecDestroy(graph_);
}

bool GraphRecording::outdated() const {
  return std::any_of(choices_.begin(), choices_.end(),
                     [](const auto& choice) { return choice->changed.load(); });
}

/// The context's memory, its segments told to the ledger.
class Recorder::LedgerMemory final : public DeviceMemory {
 public:
  explicit LedgerMemory(CudaContext* context) : context_(context) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    LTX_ASSIGN_OR_RETURN(void* const segment, context_->memory().Allocate(bytes));
    if (segment != nullptr) context_->ledger().Add(MemoryOwner::kRecordings, bytes);
    return segment;
  }
  void Free(void* segment, int64_t bytes) override {
    context_->memory().Free(segment, bytes);
    context_->ledger().Remove(MemoryOwner::kRecordings, bytes);
  }

 private:
  CudaContext* const context_;
};

Recorder::Recorder(CudaContext* context)
    : context_(context), memory_(std::make_unique<LedgerMemory>(context)) {}
Recorder::~Recorder() = default;

absl::StatusOr<cudaGraph_t> Recorder::Capture(absl::FunctionRef<absl::Status()> work) {
  // Relaxed: the pool may have to get memory meanwhile.
  LTX_RETURN_IF_CUDA_ERROR(
      cudaStreamBeginCapture(context_->stream(), cudaStreamCaptureModeRelaxed));
  const absl::Status issued = work();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(context_->stream(), &graph);
  if (issued.ok() && ended == cudaSuccess) return graph;
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // Or the next launch would report the broken capture once more.
  LTX_RETURN_IF_ERROR(issued);
  return CudaStatus(ended, "cudaStreamEndCapture");
}

std::shared_ptr<MemoryPool> Recorder::Pool() {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<MemoryPool> pool = pool_.lock();
  if (pool == nullptr) {
    pool = std::make_shared<MemoryPool>(memory_.get());
    pool_ = pool;
  }
  return pool;
}

std::vector<int64_t> Recorder::segments() const {
  std::shared_ptr<MemoryPool> pool;
  {
    absl::MutexLock lock(&mutex_);
    pool = pool_.lock();
  }
  return pool == nullptr ? std::vector<int64_t>() : pool->segments();
}

absl::StatusOr<std::unique_ptr<GraphRecording>> Recorder::Record(
    absl::FunctionRef<absl::Status()> work) {
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  std::shared_ptr<MemoryPool> pool = Pool();
  context_->UseRecordingPool(pool);
  absl::StatusOr<cudaGraph_t> graph = Capture(work);
  context_->UseRecordingPool(nullptr);
  LTX_RETURN_IF_ERROR(graph.status());
  cudaGraphExec_t executable = nullptr;
  // Nodes keep the priorities of the lanes that they were captured in.
  const cudaError_t made =
      cudaGraphInstantiateWithFlags(&executable, *graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(*graph);
  LTX_RETURN_IF_ERROR(CudaStatus(made, "cudaGraphInstantiate"));
  return std::make_unique<GraphRecording>(context_, executable, std::move(pool));
}

}  // namespace ltx::cuda
