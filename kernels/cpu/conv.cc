#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/conv_geometry.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_scratch.h"
#include "kernels/cpu/packed_conv.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

absl::Status CheckPackedInput(absl::string_view operation, const Tensor& x,
                              const ConvWeight& weight, bool transposed) {
  if (!weight.defined()) return OperandError(operation, "needs a prepared weight", {&x});
  const auto& packed = static_cast<const PackedConv&>(*weight.prepared);
  return CheckConvInput(operation, x, weight, packed.dtype, packed.transposed, transposed);
}

}  // namespace

ScratchBlocks CpuOpScratch::Conv(const ConvSize& size) const {
  PackedConv weight;
  weight.strips = (size.out_channels + kStripColumns - 1) / kStripColumns;
  ConvTask task;
  task.geometry.batch = size.batch;
  task.geometry.channels = size.in_channels;
  task.geometry.axes = size.axes;
  task.weight = &weight;
  task.phases = size.phases;
  return size.positions() == 0 ? 0 : ChooseConvBlocking(task, threads_).scratch_bytes();
}

absl::StatusOr<ConvWeight> CpuDevice::PackConv(const Tensor& weight, const Tensor& bias,
                                               bool transposed, MemoryOwner owner) {
  const int channel_axis = transposed ? 1 : 0;
  ConvWeight result;
  result.out_channels = weight.dim(channel_axis);
  result.in_channels = weight.dim(1 - channel_axis);
  result.kernel = Shape(weight.shape().dims().subspan(2));
  auto packed = std::make_shared<PackedConv>();
  packed->dtype = weight.dtype();
  packed->transposed = transposed;
  packed->taps = result.kernel.num_elements();
  packed->strips = (result.out_channels + kStripColumns - 1) / kStripColumns;
  const int64_t padded_channels = packed->strips * kStripColumns;
  LTX_ASSIGN_OR_RETURN(packed->weight,
                       Allocate({packed->strips, packed->taps, result.in_channels, kStripColumns},
                                weight.dtype(), owner));
  ConvWeightStrides strides;
  strides.output_channel = packed->taps * (transposed ? 1 : result.in_channels);
  strides.input_channel = packed->taps * (transposed ? result.out_channels : 1);
  PackConvWeight(threads_, weight.raw(), strides, result.in_channels, result.out_channels, *packed);
  if (bias.defined()) {
    LTX_ASSIGN_OR_RETURN(packed->bias, Allocate({padded_channels}, DType::kF32, owner));
    float* values = packed->bias.data<float>();
    std::fill_n(values, padded_channels, 0.0f);
    DispatchFloat(bias.dtype(), [&](auto element) {
      const auto* from = bias.data<decltype(element)>();
      for (int64_t i = 0; i < result.out_channels; ++i) values[i] = static_cast<float>(from[i]);
    });
  }
  result.prepared = std::move(packed);
  return result;
}

absl::StatusOr<ConvWeight> CpuDevice::PrepareConv(const Tensor& weight, const Tensor& bias,
                                                  MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(CheckConvWeight(weight, bias, /*transposed=*/false));
  return PackConv(weight, bias, /*transposed=*/false, owner);
}

absl::StatusOr<ConvWeight> CpuDevice::PrepareConvTranspose1d(const Tensor& weight,
                                                             const Tensor& bias,
                                                             MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(CheckConvWeight(weight, bias, /*transposed=*/true));
  return PackConv(weight, bias, /*transposed=*/true, owner);
}

absl::StatusOr<Tensor> CpuDevice::Conv(const Tensor& x, const ConvWeight& weight,
                                       const ConvOptions& options) {
  LTX_RETURN_IF_ERROR(CheckPackedInput("Conv", x, weight, /*transposed=*/false));
  ConvTask task;
  const int spatial = weight.kernel.rank();
  Shape shape = x.shape();
  for (int axis = 0; axis < spatial; ++axis) {
    auto placed = MakeConvAxis(axis, x.dim(axis + 1), weight.kernel.dim(axis), options.axes[axis]);
    if (!placed.ok()) return OperandError("Conv", placed.status().message(), {&x});
    task.geometry.axes[3 - spatial + axis] = *placed;
    shape.set_dim(axis + 1, placed->output);
  }
  shape.set_dim(-1, weight.out_channels);
  const Tensor& residual = options.residual;
  if (residual.defined() && (residual.shape() != shape || residual.dtype() != x.dtype())) {
    return OperandError("Conv", absl::StrCat("residual must be ", shape.ToString()),
                        {&x, &residual});
  }
  task.geometry.batch = x.dim(0);
  task.geometry.channels = weight.in_channels;
  task.residual = residual.raw();
  task.activation = options.activation;
  return RunConvTask(x, weight, shape, task);
}

absl::StatusOr<Tensor> CpuDevice::ConvTranspose1d(const Tensor& x, const ConvWeight& weight,
                                                  int64_t stride, int64_t padding) {
  LTX_RETURN_IF_ERROR(CheckPackedInput("ConvTranspose1d", x, weight, /*transposed=*/true));
  const auto transposed = MakeTransposedConv(x.dim(1), weight.kernel.dim(0), stride, padding);
  if (!transposed.ok()) {
    return OperandError("ConvTranspose1d", transposed.status().message(), {&x});
  }
  const Shape shape = {x.dim(0), transposed->length, weight.out_channels};
  ConvTask task;
  task.geometry.axes[2] = transposed->phase;
  task.geometry.batch = x.dim(0);
  task.geometry.channels = weight.in_channels;
  task.phases = stride;
  task.crop = transposed->crop * weight.out_channels;
  return RunConvTask(x, weight, shape, task);
}

absl::StatusOr<Tensor> CpuDevice::RunConvTask(const Tensor& x, const ConvWeight& weight,
                                              const Shape& shape, ConvTask& task) {
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  if (y.num_elements() == 0) return y;
  task.input = x.raw();
  task.weight = static_cast<const PackedConv*>(weight.prepared.get());
  task.out_channels = weight.out_channels;
  task.batch_elements = y.num_elements() / shape.dim(0);
  task.output = y.raw();
  const ConvBlocking blocking = ChooseConvBlocking(task, threads_);
  LTX_ASSIGN_OR_RETURN(const Tensor scratch, Workspace(blocking.scratch_bytes()));
  RunConv(task, blocking, scratch.raw());
  return y;
}

}  // namespace ltx::cpu
