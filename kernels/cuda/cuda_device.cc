#include "kernels/cuda/cuda_device.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/gpu_checks.h"
#include "kernels/cuda/linear_plans.h"
#include "kernels/cuda/op_scratch.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const CudaDeviceOptions& options) {
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                       CudaContext::Create(options.ordinal, options.memory));
  auto device = absl::WrapUnique(new CudaDevice(std::move(context)));
  LTX_ASSIGN_OR_RETURN(device->cudnn_attention_, CudnnAttention::Create(options.ordinal));
  device->op_scratch_ = std::make_unique<CudaOpScratch>(
      device->context_.get(), device->linear_plans_.get(), device->batched_products_.get(),
      device->cudnn_attention_.get());
  return device;
}

CudaDevice::CudaDevice(std::unique_ptr<CudaContext> context)
    : context_(std::move(context)),
      linear_plans_(std::make_unique<LinearPlans>(context_.get())),
      batched_products_(std::make_unique<BatchedProducts>()) {}
CudaDevice::~CudaDevice() = default;

std::string CudaDevice::name() const { return context_->name(); }

std::string CudaDevice::description() const {
  const cudaDeviceProp& properties = context_->properties();
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return absl::StrCat(properties.name, ", compute capability ", properties.major, ".",
                      properties.minor, ", ", properties.multiProcessorCount, " multiprocessors, ",
                      properties.totalGlobalMem >> 20, " MiB, driver for CUDA ",
                      CudaVersionText(driver), ", built for CUDA ", CudaVersionText(runtime));
}

DeviceProperties CudaDevice::properties() const {
  DeviceProperties properties;
  properties.is_gpu = true;
  properties.memory_bytes = static_cast<int64_t>(context_->properties().totalGlobalMem);
  properties.multiprocessors = context_->properties().multiProcessorCount;
  properties.threads_per_multiprocessor = context_->properties().maxThreadsPerMultiProcessor;
  return properties;
}

MemoryLedger& CudaDevice::ledger() { return context_->ledger(); }

const OpScratch& CudaDevice::op_scratch() const { return *op_scratch_; }

Preparation CudaDevice::prepared() const { return cudnn_attention_->prepared(); }

int64_t CudaDevice::SystemAvailableBytes() const {
  size_t free = 0;
  size_t total = 0;
  if (!context_->MakeCurrent().ok() || cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  // Idle segments go back to the driver before an allocation fails.
  return static_cast<int64_t>(free) + context_->idle_bytes();
}

absl::StatusOr<Tensor> CudaDevice::NewLike(const Tensor& x) {
  return Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations);
}

absl::StatusOr<Tensor> CudaDevice::Launched(absl::string_view operation, Tensor y) {
  LTX_RETURN_IF_ERROR(context_->CheckLaunch(operation));
  return y;
}

}  // namespace ltx::cuda
