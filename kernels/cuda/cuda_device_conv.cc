#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/conv_geometry.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/conv_gather.h"
#include "kernels/cuda/conv_layout.h"
#include "kernels/cuda/conv_operands.h"
#include "kernels/cuda/conv_tile.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/op_scratch.h"
#include "kernels/op_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

absl::StatusOr<const CudaConv*> PreparedFor(absl::string_view operation, const Tensor& x,
                                            const ConvWeight& weight, bool transposed) {
  if (!weight.defined()) return OperandError(operation, "needs a prepared weight", {&x});
  const auto* conv = static_cast<const CudaConv*>(weight.prepared.get());
  LTX_RETURN_IF_ERROR(
      CheckConvInput(operation, x, weight, conv->dtype, conv->transposed, transposed));
  return conv;
}

/// A convolution whose spatial axes are padded in front to three with extents of one.
ConvGatherTask GatherTaskFor(const Tensor& x, const CudaConv& conv, const ConvWeight& weight,
                             const Tensor& y) {
  ConvGatherTask task;
  task.x = x.raw();
  task.weight = conv.weight.raw();
  task.bias = conv.bias.data<float>();
  task.y = y.raw();
  task.batch = x.dim(0);
  task.channels = weight.in_channels;
  task.out_channels = weight.out_channels;
  task.bf16 = conv.dtype == DType::kBF16;
  return task;
}

/// The same for the tensor cores, if they have a kernel for it. Axes of H and W that are not padded
/// with zeros become padded copies: see NeedsCopy.
ConvTileTask TileTaskFor(const ConvGatherTask& gather) {
  ConvTileTask task;
  task.x = gather.x;
  task.weight = gather.weight;
  task.bias = gather.bias;
  task.residual = gather.residual;
  task.y = gather.y;
  task.batch = gather.batch;
  task.channels = gather.channels;
  task.out_channels = gather.out_channels;
  task.activation = gather.activation;
  for (int i = 0; i < 3; ++i) {
    const ConvAxis& axis = gather.axes[i];
    task.input[i] = axis.input;
    task.output[i] = axis.output;
    task.kernel[i] = axis.kernel;
    task.dilation[i] = axis.dilation;
    task.pad_before[i] = axis.pad_before;
  }
  task.time_pad = gather.axes[0].pad_mode;
  return task;
}

/// Input positions that the kernel reaches along an axis.
int64_t ReachOf(const ConvAxis& axis) {
  return (axis.output - 1) * axis.stride + axis.dilation * (axis.kernel - 1) + 1;
}

/// True if an axis of H or W reads elements around the input that are not zeros.
bool NeedsCopy(const ConvAxis& axis) {
  return axis.pad_mode != PadMode::kZeros &&
         (axis.pad_before > 0 || ReachOf(axis) - axis.pad_before > axis.input);
}

/// Bf16 at stride 1 over at least two axes: on a single line the tile kernel's squares of pixels
/// would be mostly empty.
bool SuitsTiles(const ConvGatherTask& task) {
  if (!task.bf16 || task.axes[1].output == 1) return false;
  for (const ConvAxis& axis : task.axes) {
    if (axis.stride != 1) return false;
  }
  return task.channels > 0;
}

/// The form of a convolution for the tensor cores, if that is how `gpu` computes it.
std::optional<ConvTileTask> TilesFor(const cudaDeviceProp& gpu, const ConvGatherTask& task) {
  if (!IsHopper(gpu) || !SuitsTiles(task)) return std::nullopt;
  const ConvTileTask tile = TileTaskFor(task);
  if (!FitsConvTile(tile)) return std::nullopt;
  return tile;
}

/// The padded copy of the input that the tile kernel reads in its place, if it needs one.
std::optional<PadImagesTask> CopyFor(const ConvGatherTask& task) {
  if (!NeedsCopy(task.axes[1]) && !NeedsCopy(task.axes[2])) return std::nullopt;
  PadImagesTask pad;
  pad.x = task.x;
  pad.images = task.batch * task.axes[0].input;
  pad.channels = task.channels;
  for (int i = 0; i < 2; ++i) {
    const ConvAxis& axis = task.axes[i + 1];
    pad.input[i] = axis.input;
    pad.output[i] = ReachOf(axis);
    pad.before[i] = axis.pad_before;
    pad.mode[i] = axis.pad_mode;
  }
  return pad;
}

int64_t BytesOf(const PadImagesTask& copy) {
  return copy.images * copy.output[0] * copy.output[1] * copy.channels * SizeOf(DType::kBF16);
}

}  // namespace

absl::StatusOr<ConvWeight> CudaDevice::PackConv(const Tensor& weight, const Tensor& bias,
                                                bool transposed, MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(CheckConvWeight(weight, bias, transposed));
  const int channel_axis = transposed ? 1 : 0;
  ConvWeight result;
  result.out_channels = weight.dim(channel_axis);
  result.in_channels = weight.dim(1 - channel_axis);
  result.kernel = Shape(weight.shape().dims().subspan(2));
  auto conv = std::make_shared<CudaConv>();
  conv->dtype = weight.dtype();
  conv->transposed = transposed;
  PackConvWeightTask task;
  task.taps = result.kernel.num_elements();
  task.out_channels = result.out_channels;
  task.channels = result.in_channels;
  task.out_stride = task.taps * (transposed ? 1 : task.channels);
  task.in_stride = task.taps * (transposed ? task.out_channels : 1);
  task.bf16 = conv->dtype == DType::kBF16;
  LTX_ASSIGN_OR_RETURN(conv->weight,
                       Allocate({task.taps, task.out_channels, task.channels}, conv->dtype, owner));
  task.weight = weight.raw();
  task.out = conv->weight.raw();
  LTX_RETURN_IF_CUDA_ERROR(LaunchPackConvWeight(task, context_->stream()));
  if (bias.defined()) {
    LTX_ASSIGN_OR_RETURN(conv->bias, Allocate(bias.shape(), DType::kF32, owner));
    LaunchCast(bias.raw(), bias.dtype(), conv->bias.raw(), DType::kF32, bias.num_elements(),
               context_->stream());
    LTX_RETURN_IF_ERROR(context_->CheckLaunch("PrepareConv"));
  }
  result.prepared = std::move(conv);
  return result;
}

absl::StatusOr<ConvWeight> CudaDevice::PrepareConv(const Tensor& weight, const Tensor& bias,
                                                   MemoryOwner owner) {
  return PackConv(weight, bias, /*transposed=*/false, owner);
}

absl::StatusOr<ConvWeight> CudaDevice::PrepareConvTranspose1d(const Tensor& weight,
                                                              const Tensor& bias,
                                                              MemoryOwner owner) {
  return PackConv(weight, bias, /*transposed=*/true, owner);
}

absl::StatusOr<ConvOperands> CheckConv(absl::string_view operation, const Tensor& x,
                                       const ConvWeight& weight, const ConvOptions& options) {
  ConvOperands operands;
  LTX_ASSIGN_OR_RETURN(operands.conv, PreparedFor(operation, x, weight, /*transposed=*/false));
  const int spatial = weight.kernel.rank();
  operands.shape = x.shape();
  for (int i = 0; i < spatial; ++i) {
    auto placed = MakeConvAxis(i, x.dim(i + 1), weight.kernel.dim(i), options.axes[i]);
    if (!placed.ok()) return OperandError(operation, placed.status().message(), {&x});
    operands.axes[3 - spatial + i] = *placed;
    operands.shape.set_dim(i + 1, placed->output);
  }
  operands.shape.set_dim(-1, weight.out_channels);
  const Tensor& residual = options.residual;
  if (residual.defined() && (residual.shape() != operands.shape || residual.dtype() != x.dtype())) {
    return OperandError(operation, absl::StrCat("residual must be ", operands.shape.ToString()),
                        {&x, &residual});
  }
  return operands;
}

absl::StatusOr<Tensor> CudaDevice::Conv(const Tensor& x, const ConvWeight& weight,
                                        const ConvOptions& options) {
  LTX_ASSIGN_OR_RETURN(const ConvOperands operands, CheckConv("Conv", x, weight, options));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(operands.shape, x.dtype(), MemoryOwner::kActivations));
  if (y.num_elements() == 0) return y;
  ConvGatherTask task = GatherTaskFor(x, *operands.conv, weight, y);
  task.axes = operands.axes;
  task.residual = options.residual.raw();
  task.activation = options.activation;
  LTX_RETURN_IF_ERROR(RunConv(task));
  return y;
}

absl::Status CudaDevice::RunConv(const ConvGatherTask& task) {
  const cudaDeviceProp& gpu = context_->properties();
  std::optional<ConvTileTask> tile = TilesFor(gpu, task);
  if (!tile.has_value()) {
    LTX_RETURN_IF_CUDA_ERROR(LaunchConvGather(task, context_->stream()));
    return absl::OkStatus();
  }
  Tensor padded;
  if (std::optional<PadImagesTask> copy = CopyFor(task)) {
    LTX_ASSIGN_OR_RETURN(padded, context_->Workspace(BytesOf(*copy)));
    copy->out = padded.raw();
    LTX_RETURN_IF_CUDA_ERROR(LaunchPadImages(*copy, context_->stream()));
    tile->x = padded.raw();
    for (int i = 0; i < 2; ++i) {
      tile->input[i + 1] = copy->output[i];
      tile->pad_before[i + 1] = 0;
    }
  }
  LTX_RETURN_IF_CUDA_ERROR(LaunchConvTile(*tile, gpu.multiProcessorCount, context_->stream()));
  return absl::OkStatus();
}

ScratchBlocks CudaOpScratch::Conv(const ConvSize& size) const {
  if (size.phases > 1 || size.positions() * size.out_channels == 0) return 0;
  ConvGatherTask task;
  task.batch = size.batch;
  task.channels = size.in_channels;
  task.out_channels = size.out_channels;
  task.axes = size.axes;
  task.bf16 = size.dtype == DType::kBF16;
  task.activation = size.activation;
  if (!TilesFor(context_->properties(), task).has_value()) return 0;
  const std::optional<PadImagesTask> copy = CopyFor(task);
  return copy.has_value() ? BytesOf(*copy) : 0;
}

absl::StatusOr<Tensor> CudaDevice::ConvTranspose1d(const Tensor& x, const ConvWeight& weight,
                                                   int64_t stride, int64_t padding) {
  LTX_ASSIGN_OR_RETURN(const CudaConv* conv,
                       PreparedFor("ConvTranspose1d", x, weight, /*transposed=*/true));
  const auto transposed = MakeTransposedConv(x.dim(1), weight.kernel.dim(0), stride, padding);
  if (!transposed.ok()) {
    return OperandError("ConvTranspose1d", transposed.status().message(), {&x});
  }
  const Shape shape = {x.dim(0), transposed->length, weight.out_channels};
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  if (y.num_elements() == 0) return y;
  ConvGatherTask task = GatherTaskFor(x, *conv, weight, y);
  task.axes[2] = transposed->phase;
  task.phases = stride;
  task.crop = transposed->crop;
  task.phase_taps = weight.kernel.dim(0);
  task.phase_output = shape.dim(1);
  LTX_RETURN_IF_CUDA_ERROR(LaunchConvGather(task, context_->stream()));
  return y;
}

}  // namespace ltx::cuda
