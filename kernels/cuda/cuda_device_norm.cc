#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/group_norm_kernels.h"
#include "kernels/cuda/op_scratch.h"
#include "kernels/cuda/residual_norm.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/op_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// The vectors of the tokens of x [B, ..., D].
RowVectorsView ViewOf(const RowVectors& vectors, const Tensor& x) {
  RowVectorsView view;
  const Tensor& rows = vectors.rows;
  if (!rows.defined()) return view;
  view.rows = static_cast<const uint8_t*>(rows.raw()) + vectors.offset * SizeOf(rows.dtype());
  view.count = rows.dim(0);
  view.stride = rows.dim(1);
  view.index = vectors.index.data<int32_t>();
  if (rows.dim(0) > 1 && x.dim(0) > 0) view.tokens_per_row = x.shape().num_rows() / x.dim(0);
  return view;
}

RowNormTask TaskFor(const Tensor& x, const Columns& y) {
  RowNormTask task;
  task.x = x.raw();
  task.y = y.tensor.data<uint8_t>() + y.begin * SizeOf(x.dtype());
  task.rows = x.shape().num_rows();
  task.width = x.dim(-1);
  task.x_stride = task.width;
  task.y_stride = y.pitch();
  task.bf16 = x.dtype() == DType::kBF16;
  return task;
}

}  // namespace

absl::StatusOr<Tensor> CudaDevice::RmsNorm(const Tensor& x, const Tensor& weight, float epsilon,
                                           bool one_plus_weight, Activation activation) {
  LTX_RETURN_IF_ERROR(CheckFloat("RmsNorm", x, 1));
  LTX_RETURN_IF_ERROR(CheckOptionalVector("RmsNorm", x, weight, x.dim(-1)));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  RowNormTask task = TaskFor(x, y);
  task.statistic = RowNormTask::Statistic::kRms;
  task.epsilon = epsilon;
  task.base = one_plus_weight ? 1.0f : 0.0f;
  task.scale.rows = weight.raw();
  task.scale.count = 1;
  task.activation = activation;
  LTX_RETURN_IF_CUDA_ERROR(LaunchRowNorm(task, context_->stream()));
  return y;
}

absl::Status CudaDevice::RmsNormInto(const Tensor& x, float epsilon, Columns* columns) {
  LTX_RETURN_IF_ERROR(CheckRmsNormInto(x, *columns));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  RowNormTask task = TaskFor(x, *columns);
  task.statistic = RowNormTask::Statistic::kRms;
  task.epsilon = epsilon;
  LTX_RETURN_IF_CUDA_ERROR(LaunchRowNorm(task, context_->stream()));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CudaDevice::ModulateRows(absl::string_view operation, const Tensor& x,
                                                const RowVectors& scale, const RowVectors& shift,
                                                RowNormTask::Statistic statistic, float epsilon,
                                                Activation activation) {
  LTX_RETURN_IF_ERROR(CheckModulation(operation, x, scale, shift));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  RowNormTask task = TaskFor(x, y);
  task.statistic = statistic;
  task.epsilon = epsilon;
  task.scale = ViewOf(scale, x);
  task.shift = ViewOf(shift, x);
  task.activation = activation;
  LTX_RETURN_IF_CUDA_ERROR(LaunchRowNorm(task, context_->stream()));
  return y;
}

absl::StatusOr<Tensor> CudaDevice::LayerNormModulate(const Tensor& x, float epsilon,
                                                     const RowVectors& scale,
                                                     const RowVectors& shift) {
  return ModulateRows("LayerNormModulate", x, scale, shift, RowNormTask::Statistic::kLayer, epsilon,
                      Activation::kNone);
}

absl::StatusOr<Tensor> CudaDevice::Modulate(const Tensor& x, const RowVectors& scale,
                                            const RowVectors& shift, Activation activation) {
  return ModulateRows("Modulate", x, scale, shift, RowNormTask::Statistic::kNone, 0.0f, activation);
}

absl::StatusOr<Tensor> CudaDevice::GroupNorm(const Tensor& x, const Tensor& weight,
                                             const Tensor& bias, const GroupNormOptions& options) {
  LTX_RETURN_IF_ERROR(CheckGroupNorm(x, weight, bias, options));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  if (x.num_elements() == 0) return y;
  GroupNormTask task;
  task.x = x.raw();
  task.y = y.raw();
  task.weight = weight.raw();
  task.bias = bias.raw();
  task.batch = x.dim(0);
  task.positions = x.shape().num_rows() / x.dim(0);
  task.channels = x.dim(-1);
  task.groups = options.groups;
  task.bf16 = x.dtype() == DType::kBF16;
  task.epsilon = options.epsilon;
  task.activation = options.activation;
  LTX_ASSIGN_OR_RETURN(const Tensor workspace, context_->Workspace(GroupNormWorkspaceBytes(task)));
  LTX_RETURN_IF_CUDA_ERROR(LaunchGroupNorm(task, workspace.raw(), context_->stream()));
  return y;
}

ScratchBlocks CudaOpScratch::GroupNorm(const GroupNormSize& size) const {
  if (size.batch * size.positions * size.channels == 0) return 0;
  GroupNormTask task;
  task.batch = size.batch;
  task.positions = size.positions;
  task.channels = size.channels;
  task.groups = size.groups;
  task.bf16 = size.dtype == DType::kBF16;
  return GroupNormWorkspaceBytes(task);
}

absl::StatusOr<std::vector<Tensor>> CudaDevice::ResidualNorm(
    Tensor* state, const ResidualUpdate& update, float epsilon,
    absl::Span<const NormReading> readings) {
  LTX_RETURN_IF_ERROR(CheckResidualNorm(*state, update, readings));
  if (readings.size() > ResidualNormTask::kMaxReadings) {
    return absl::UnimplementedError(absl::StrCat("ResidualNorm with ", readings.size(),
                                                 " readings; the CUDA device makes up to ",
                                                 ResidualNormTask::kMaxReadings));
  }
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  ResidualNormTask task;
  task.x = state->raw();
  task.rows = state->shape().num_rows();
  task.width = state->dim(-1);
  task.bf16 = state->dtype() == DType::kBF16;
  task.epsilon = epsilon;
  if (update.value.defined()) {
    task.update = update.value.raw();
    task.first = update.first_batch * state->dim(1);
    task.last = task.first + update.value.shape().num_rows();
    task.gate = ViewOf(update.gate, update.value);
  }
  std::vector<Tensor> results;
  for (const NormReading& reading : readings) {
    LTX_ASSIGN_OR_RETURN(Tensor result, NewLike(*state));
    task.reading[task.readings++] = {result.raw(), ViewOf(reading.scale, *state),
                                     ViewOf(reading.shift, *state)};
    results.push_back(std::move(result));
  }
  LTX_RETURN_IF_CUDA_ERROR(LaunchResidualNorm(task, context_->stream()));
  return results;
}

}  // namespace ltx::cuda
