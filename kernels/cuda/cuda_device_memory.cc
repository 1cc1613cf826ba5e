#include "kernels/allocation.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/linear_plans.h"
#include "kernels/cuda/staged_uploads.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::Allocate(const Shape& shape, DType dtype, MemoryOwner owner) {
  return context_->Allocate(shape, dtype, owner);
}

absl::Status CudaDevice::Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) {
  LTX_RETURN_IF_ERROR(CheckTransfer("upload", tensor, bytes.size()));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  return context_->staging().Upload(bytes, tensor.raw(), context_->stream());
}

std::unique_ptr<Uploads> CudaDevice::StartUploads() {
  return std::make_unique<StagedUploads>(context_.get());
}

absl::Status CudaDevice::Download(const Tensor& tensor, absl::Span<uint8_t> bytes) {
  LTX_RETURN_IF_ERROR(CheckTransfer("download", tensor, bytes.size()));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  return context_->staging().Download(tensor.raw(), bytes, context_->stream());
}

absl::Status CudaDevice::Copy(const Tensor& from, Tensor* to) {
  LTX_RETURN_IF_ERROR(CheckCopy(from, *to));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  if (from.num_bytes() == 0) return absl::OkStatus();
  LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to->raw(), from.raw(),
                                           static_cast<size_t>(from.num_bytes()),
                                           cudaMemcpyDeviceToDevice, context_->stream()));
  return absl::OkStatus();
}

absl::Status CudaDevice::Concurrently(absl::FunctionRef<absl::Status()> first,
                                      absl::FunctionRef<absl::Status()> second) {
  LTX_RETURN_IF_ERROR(context_->Fork());
  absl::Status status = first();
  if (status.ok()) {
    context_->UseSideLane();
    status = second();
  }
  // Also after a failure: the main lane must not overtake what the side lane was given.
  absl::Status joined = context_->Join();
  LTX_RETURN_IF_ERROR(status);
  return joined;
}

absl::StatusOr<std::unique_ptr<Recording>> CudaDevice::Record(
    absl::FunctionRef<absl::Status()> work) {
  linear_plans_->StartNoting();
  cudnn_attention_->StartNoting();
  absl::StatusOr<std::unique_ptr<GraphRecording>> recording = recorder_.Record(work);
  std::vector<std::shared_ptr<const ProductChoice>> choices = linear_plans_->StopNoting();
  std::vector<std::shared_ptr<const void>> code = cudnn_attention_->StopNoting();
  LTX_RETURN_IF_ERROR(recording.status());
  (*recording)->Keep(std::move(choices), std::move(code));
  return *std::move(recording);
}

absl::Status CudaDevice::Replay(const Recording& recording) {
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  const auto& graph = static_cast<const GraphRecording&>(recording);
  LTX_RETURN_IF_CUDA_ERROR(cudaGraphLaunch(graph.graph(), context_->stream()));
  return absl::OkStatus();
}

absl::Status CudaDevice::Synchronize() {
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  LTX_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(context_->stream()));
  return absl::OkStatus();
}

}  // namespace ltx::cuda
