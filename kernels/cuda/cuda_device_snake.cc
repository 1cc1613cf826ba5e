#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/snake_kernels.h"
#include "kernels/op_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

absl::StatusOr<Tensor> CudaDevice::AntiAliasedSnake(const Tensor& x, const Tensor& up,
                                                    const Tensor& down, const Tensor& alpha,
                                                    const Tensor& inverse_beta) {
  LTX_RETURN_IF_ERROR(CheckAntiAliasedSnake(x, up, down, alpha, inverse_beta));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  SnakeTask task;
  task.x = x.data<float>();
  task.y = y.data<float>();
  task.up = up.data<float>();
  task.down = down.data<float>();
  task.alpha = alpha.data<float>();
  task.inverse_beta = inverse_beta.data<float>();
  task.batch = x.dim(0);
  task.length = x.dim(1);
  task.channels = x.dim(2);
  LTX_RETURN_IF_CUDA_ERROR(LaunchSnake(task, context_->stream()));
  return y;
}

}  // namespace ltx::cuda
