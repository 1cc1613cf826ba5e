#include "kernels/cuda/context.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/allocation.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// bf16 products and asynchronous copies begin with Ampere.
constexpr int kOldestMajor = 8;

/// A block that its ledger knows of for as long as it lives.
class PooledStorage final : public Storage {
 public:
  PooledStorage(void* data, int64_t bytes, MemoryOwner owner, CudaContext* context,
                std::shared_ptr<MemoryPool> pool)
      : Storage(data, bytes, /*host_accessible=*/false),
        owner_(owner),
        context_(context),
        pool_(std::move(pool)) {}

  ~PooledStorage() override {
    if (bytes() == 0) return;
    pool_->Give(data(), context_->lane());
    context_->ledger().Remove(owner_, bytes());
  }

 private:
  const MemoryOwner owner_;
  CudaContext* const context_;
  const std::shared_ptr<MemoryPool> pool_;
};

/// True for what outlives a request.
bool Lasts(MemoryOwner owner) {
  switch (owner) {
    case MemoryOwner::kActivations:
    case MemoryOwner::kWorkspace:
    case MemoryOwner::kMedia:
      return false;
    default:
      return true;
  }
}

}  // namespace

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
      lasting_pool_(std::make_shared<MemoryPool>(memory_)),
      own_transient_pool_(std::make_shared<MemoryPool>(memory_)),
      transient_pool_(own_transient_pool_) {}

CudaContext::~CudaContext() {
  cudaSetDevice(ordinal_);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (cublas_lt_ != nullptr) cublasLtDestroy(cublas_lt_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Create(int ordinal,
                                                                 DeviceMemory* memory) {
  auto context = absl::WrapUnique(new CudaContext(ordinal, memory));
  LTX_RETURN_IF_ERROR(context->MakeCurrent());
  cudaDeviceProp& properties = context->properties_;
  LTX_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, ordinal));
  if (properties.major < kOldestMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        context->name_, " (", properties.name, ") has compute capability ", properties.major, ".",
        properties.minor, "; ", kOldestMajor, ".0 or newer is needed"));
  }
  LTX_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&context->stream_, cudaStreamNonBlocking));
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtCreate(&context->cublas_lt_));
  return context;
}

absl::Status CudaContext::MakeCurrent() const {
  LTX_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CudaContext::Allocate(const Shape& shape, DType dtype, MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(MakeCurrent());
  LTX_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(shape, dtype));
  const std::shared_ptr<MemoryPool>& pool = Lasts(owner) ? lasting_pool_ : transient_pool_;
  void* block = nullptr;
  if (bytes > 0) {
    if (!memory_->Admit(bytes, owner)) return OutOfMemoryError(name_, bytes, owner, ledger_);
    LTX_ASSIGN_OR_RETURN(block, pool->Take(bytes, lane()));
    if (block == nullptr) {
      Trim();  // The other pool may hold what this one lacks.
      LTX_ASSIGN_OR_RETURN(block, pool->Take(bytes, lane()));
    }
    if (block == nullptr) return OutOfMemoryError(name_, bytes, owner, ledger_);
    ledger_.Add(owner, bytes);
  }
  return Tensor(std::make_shared<PooledStorage>(block, bytes, owner, this, pool), 0, shape, dtype);
}

absl::StatusOr<Tensor> CudaContext::Workspace(int64_t bytes) {
  return Allocate({bytes}, DType::kU8, MemoryOwner::kWorkspace);
}

absl::Status CudaContext::CheckLaunch(absl::string_view operation) const {
  return CudaStatus(cudaGetLastError(), operation);
}

int64_t CudaContext::idle_bytes() const {
  const MemoryPool::Usage lasting = lasting_pool_->usage();
  const MemoryPool::Usage transient = own_transient_pool_->usage();
  return lasting.reserved_bytes + transient.reserved_bytes - ledger_.Read().total.live_bytes;
}

void CudaContext::Trim() {
  lasting_pool_->Trim();
  own_transient_pool_->Trim();
}

}  // namespace ltx::cuda
