#include "kernels/allocation.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

SystemMemory CudaDevice::ReadSystemMemory() const {
  size_t available = 0;
  size_t total = 0;
  if (!context_->MakeCurrent().ok() || cudaMemGetInfo(&available, &total) != cudaSuccess) return {};
  return {static_cast<int64_t>(total), static_cast<int64_t>(available)};
}

absl::StatusOr<Tensor> CudaDevice::Allocate(const Shape& shape, DType dtype, MemoryOwner owner) {
  return context_->Allocate(shape, dtype, owner);
}

absl::Status CudaDevice::Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) {
  LTX_RETURN_IF_ERROR(CheckTransfer("upload", tensor, bytes.size()));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  return staging_->Upload(bytes, tensor.raw(), context_->stream());
}

absl::Status CudaDevice::Download(const Tensor& tensor, absl::Span<uint8_t> bytes) {
  LTX_RETURN_IF_ERROR(CheckTransfer("download", tensor, bytes.size()));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  return staging_->Download(tensor.raw(), bytes, context_->stream());
}

absl::Status CudaDevice::Synchronize() {
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  LTX_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(context_->stream()));
  return absl::OkStatus();
}

}  // namespace ltx::cuda
