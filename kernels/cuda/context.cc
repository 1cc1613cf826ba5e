#include "kernels/cuda/context.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/allocation.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/gpu_checks.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// Segments for weights: 160 of them for a model of 40 GB, with a quarter of a gigabyte to spare at
/// most.
constexpr int64_t kLastingGrowth = int64_t{256} << 20;

}  // namespace

/// A block that its ledger knows of for as long as it lives, unless it belongs to a recording.
class CudaContext::PooledStorage final : public Storage {
 public:
  PooledStorage(void* data, int64_t bytes, MemoryOwner owner, bool counted, CudaContext* context,
                std::shared_ptr<MemoryPool> pool)
      : Storage(data, bytes, /*host_accessible=*/false),
        owner_(owner),
        counted_(counted),
        context_(context),
        pool_(std::move(pool)),
        section_(context->lanes_.section()) {}

  ~PooledStorage() override {
    if (bytes() == 0) return;
    context_->lanes_.Give(pool_, data(), section_);
    if (counted_) context_->ledger().Remove(owner_, bytes());
  }

 private:
  const MemoryOwner owner_;
  const bool counted_;
  CudaContext* const context_;
  const std::shared_ptr<MemoryPool> pool_;
  const uint64_t section_;
};

absl::StatusOr<void*> CudaHeap::Allocate(int64_t bytes) {
  void* segment = nullptr;
  const cudaError_t error = cudaMalloc(&segment, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // Or the next launch would report it once more.
    return nullptr;
  }
  LTX_RETURN_IF_ERROR(CudaStatus(error, "cudaMalloc"));
  return segment;
}

void CudaHeap::Free(void* segment, int64_t /*bytes*/) { cudaFree(segment); }

CudaContext::CudaContext(int ordinal, DeviceMemory* memory)
    : ordinal_(ordinal),
      name_(absl::StrCat("cuda:", ordinal)),
      memory_(memory == nullptr ? &heap_ : memory),
      lasting_pool_(std::make_shared<MemoryPool>(memory_, kLastingGrowth)),
      transient_pool_(std::make_shared<MemoryPool>(memory_)) {}

CudaContext::~CudaContext() {
  cudaSetDevice(ordinal_);
  staging_.reset();
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cudaStreamSynchronize(stream);
  }
  if (cublas_lt_ != nullptr) cublasLtDestroy(cublas_lt_);
  for (cudaEvent_t event : events_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
}

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(int ordinal,
                                                                 DeviceMemory* memory) {
  auto context = absl::WrapUnique(new CudaContext(ordinal, memory));
  LTX_RETURN_IF_ERROR(context->MakeCurrent());
  cudaDeviceProp& properties = context->properties_;
  LTX_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, ordinal));
  LTX_RETURN_IF_ERROR(CheckCapability(absl::StrCat(context->name_, " (", properties.name, ")"),
                                      properties.major, properties.minor));
  int least = 0;
  int greatest = 0;
  LTX_RETURN_IF_CUDA_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  // The side lane holds the smaller operations: they go first wherever a multiprocessor gets free.
  for (const MemoryPool::Lane lane : {PoolLanes::kMain, PoolLanes::kSide}) {
    LTX_RETURN_IF_CUDA_ERROR(
        cudaStreamCreateWithPriority(&context->streams_[lane], cudaStreamNonBlocking,
                                     lane == PoolLanes::kSide ? greatest : least));
    LTX_RETURN_IF_CUDA_ERROR(
        cudaEventCreateWithFlags(&context->events_[lane], cudaEventDisableTiming));
  }
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtCreate(&context->cublas_lt_));
  LTX_ASSIGN_OR_RETURN(context->staging_, Staging::Create());
  return context;
}

absl::Status CudaContext::MakeCurrent() const {
  LTX_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CudaContext::Allocate(const Shape& shape, DType dtype, MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(MakeCurrent());
  LTX_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(shape, dtype));
  const std::shared_ptr<MemoryPool>& pool =
      GoesWithRequest(owner) ? TransientPool() : lasting_pool_;
  const bool counted = pool != recording_pool_;
  void* block = nullptr;
  if (bytes > 0) {
    if (!memory_->Admit(bytes, owner)) return OutOfMemoryError(name_, bytes, owner, ledger_);
    LTX_ASSIGN_OR_RETURN(block, pool->Take(bytes, lane()));
    if (block == nullptr) {
      Trim();  // The other pool may hold what this one lacks.
      LTX_ASSIGN_OR_RETURN(block, pool->Take(bytes, lane()));
    }
    if (block == nullptr) return OutOfMemoryError(name_, bytes, owner, ledger_);
    if (counted) ledger_.Add(owner, bytes);
  }
  return Tensor(std::make_shared<PooledStorage>(block, bytes, owner, counted, this, pool), 0, shape,
                dtype);
}

absl::Status CudaContext::Fork() {
  if (lanes_.section() != 0) {
    return absl::FailedPreconditionError("work is split into two lanes already");
  }
  LTX_RETURN_IF_ERROR(MakeCurrent());
  staging_->Settle();
  LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(events_[PoolLanes::kMain], streams_[PoolLanes::kMain]));
  LTX_RETURN_IF_CUDA_ERROR(
      cudaStreamWaitEvent(streams_[PoolLanes::kSide], events_[PoolLanes::kMain]));
  lanes_.Fork({lasting_pool_.get(), TransientPool().get()});
  return absl::OkStatus();
}

absl::Status CudaContext::Join() {
  staging_->Settle();
  const cudaError_t marked = cudaEventRecord(events_[PoolLanes::kSide], streams_[PoolLanes::kSide]);
  const cudaError_t waited =
      cudaStreamWaitEvent(streams_[PoolLanes::kMain], events_[PoolLanes::kSide]);
  lanes_.Join({lasting_pool_.get(), TransientPool().get()});
  LTX_RETURN_IF_CUDA_ERROR(marked);
  LTX_RETURN_IF_CUDA_ERROR(waited);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CudaContext::Workspace(int64_t bytes) {
  return Allocate({bytes}, DType::kU8, MemoryOwner::kWorkspace);
}

absl::Status CudaContext::CheckLaunch(absl::string_view operation) const {
  return CudaStatus(cudaGetLastError(), operation);
}

int64_t CudaContext::idle_bytes() const {
  const MemoryPool::Usage lasting = lasting_pool_->usage();
  const MemoryPool::Usage transient = transient_pool_->usage();
  return lasting.reserved_bytes + transient.reserved_bytes - ledger_.Read().total.live_bytes;
}

void CudaContext::Trim() {
  lasting_pool_->Trim();
  transient_pool_->Trim();
}

}  // namespace ltx::cuda
