#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/philox_normals.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::PhiloxNormals(const PhiloxDraw& draw, DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kF64) {
    return absl::UnimplementedError(absl::StrCat("PhiloxNormals: dtype ", DTypeName(dtype),
                                                 " is not supported, only F32 and F64"));
  }
  // PyTorch's blocks have 256 threads; a multiprocessor holds at least one.
  if (draw.offset % 4 != 0 || draw.count < 0 || draw.multiprocessors < 1 ||
      draw.threads_per_multiprocessor < 256) {
    return absl::InternalError(absl::StrCat("PhiloxNormals: a draw of ", draw.count, " at offset ",
                                            draw.offset, " for ", draw.multiprocessors, " x ",
                                            draw.threads_per_multiprocessor, " threads"));
  }
  LTX_ASSIGN_OR_RETURN(Tensor normals, Allocate({draw.count}, dtype, MemoryOwner::kActivations));
  PhiloxTask task;
  task.out = normals.raw();
  task.f64 = dtype == DType::kF64;
  task.seed = draw.seed;
  task.offset = draw.offset;
  task.count = draw.count;
  task.multiprocessors = draw.multiprocessors;
  task.threads_per_multiprocessor = draw.threads_per_multiprocessor;
  LTX_RETURN_IF_CUDA_ERROR(LaunchPhiloxNormals(task, context_->stream()));
  return normals;
}

}  // namespace ltx::cuda
