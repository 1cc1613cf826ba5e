#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/conv_operands.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/op_scratch.h"
#include "kernels/cuda/winograd_conv.h"
#include "kernels/cuda/winograd_transform.h"
#include "kernels/layout_shapes.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// The transformed input is twice as large as the input, so it is made for some pairs of frames at
/// a time. With this much, a run at the largest sizes takes thirty rounds of a GPU's processors, so
/// that little is lost in the last: some 2 % less time than with 288 MiB.
constexpr int64_t kMostFactorBytes = int64_t{900} << 20;
/// More than this only where it spares a round.
constexpr int64_t kUsualFactorBytes = int64_t{176} << 20;
/// Of the kernel, 3 x 3 x 3.
constexpr int64_t kTimeTaps = 3;
constexpr int64_t kSpaceTaps = 9;

/// A convolution in Winograd's form, but for addresses.
struct WinogradPlan {
  WinogradInputTask input;
  WinogradConvTask conv;
  int64_t pairs = 0;
  /// How many of them are made at a time.
  int64_t step = 0;
  /// Of the transformed input of a step.
  int64_t factor_bytes = 0;
  /// Of the transformed weight.
  int64_t sum_bytes = 0;
};

/// Whether it pays between so many channels.
bool WinogradPays(int64_t channels, int64_t out_channels) {
  // Tiles have 128 channels: they must be filled for the fewer products to pay.
  constexpr int64_t kTile = 128;
  const int64_t tiles = (out_channels + kTile - 1) / kTile;
  return channels > 0 && FitsWinogradInput(channels) && out_channels % 8 == 0 &&
         4 * out_channels >= 3 * tiles * kTile;
}

/// Stride 1, no dilation, zeros one line around each frame, at least one whole pair of frames.
bool SuitsWinograd(const NormConvSize& size) {
  const ConvSize& conv = size.conv;
  if (conv.dtype != DType::kBF16 || conv.activation != Activation::kNone) return false;
  if (size.norm_activation != Activation::kNone && size.norm_activation != Activation::kSilu) {
    return false;
  }
  // A residual is added where it stands before depth-to-space.
  if (size.residual && size.depth_to_space != NormConvSize().depth_to_space) return false;
  for (int i = 0; i < 3; ++i) {
    const ConvAxis& axis = conv.axes[i];
    if (axis.kernel != 3 || axis.stride != 1 || axis.dilation != 1) return false;
    if (i > 0 &&
        (axis.pad_mode != PadMode::kZeros || axis.pad_before != 1 || axis.output != axis.input)) {
      return false;
    }
  }
  return conv.axes[0].output > 1 && conv.positions() > 0 &&
         WinogradPays(conv.in_channels, conv.out_channels);
}

/// How many pairs of frames to make at a time: of those numbers that the memory allows the one with
/// the fewest rounds in all; of several the largest that keeps to the usual memory, or else the
/// smallest.
int64_t PairsAtATime(const WinogradConvTask& task, int64_t pairs, int64_t pair_bytes,
                     int multiprocessors) {
  const int64_t most = std::clamp<int64_t>(kMostFactorBytes / pair_bytes, 1, pairs);
  int64_t best = most;
  int64_t least = -1;
  for (int64_t count = most; 2 * count > most; --count) {
    const int64_t rest = pairs % count;
    int64_t rounds = pairs / count * WinogradRounds(task, count, multiprocessors);
    if (rest > 0) rounds += WinogradRounds(task, rest, multiprocessors);
    const bool lavish = best * pair_bytes > kUsualFactorBytes;
    if (least >= 0 && (rounds > least || (rounds == least && !lavish))) continue;
    least = rounds;
    best = count;
  }
  return best;
}

/// None if `gpu` computes it in another way.
std::optional<WinogradPlan> PlanWinograd(const cudaDeviceProp& gpu, const NormConvSize& size) {
  if (!IsHopper(gpu) || !SuitsWinograd(size)) return std::nullopt;
  const ConvAxis& time = size.conv.axes[0];
  WinogradPlan plan;
  WinogradConvTask& conv = plan.conv;
  conv.channels = size.conv.in_channels;
  conv.out_channels = size.conv.out_channels;
  conv.frames = time.output;
  conv.height = size.conv.axes[1].output;
  conv.width = size.conv.axes[2].output;
  conv.depth_to_space = size.depth_to_space;
  conv.drop_first_frame = size.drop_first_frame;
  if (!FitsWinogradConv(conv)) return std::nullopt;
  WinogradInputTask& input = plan.input;
  input.frames = time.input;
  input.positions = conv.height * conv.width;
  input.channels = conv.channels;
  input.output_frames = time.output;
  input.pad_before = time.pad_before;
  input.pad_mode = time.pad_mode;
  input.silu = size.norm_activation == Activation::kSilu;
  plan.pairs = (time.output + 1) / 2;
  const int64_t pair_bytes =
      kWinogradProducts * input.positions * input.channels * SizeOf(DType::kBF16);
  plan.step = PairsAtATime(conv, plan.pairs, pair_bytes, gpu.multiProcessorCount);
  plan.factor_bytes = plan.step * pair_bytes;
  plan.sum_bytes =
      kWinogradSums * kSpaceTaps * conv.channels * conv.out_channels * SizeOf(DType::kBF16);
  return plan;
}

NormConvSize NormConvSizeOf(const ConvOperands& operands, const ConvWeight& weight,
                            const ConvOptions& options, const NormConvOptions& around) {
  NormConvSize size;
  size.conv.batch = operands.shape.dim(0);
  size.conv.axes = operands.axes;
  size.conv.in_channels = weight.in_channels;
  size.conv.out_channels = weight.out_channels;
  size.conv.dtype = operands.conv->dtype;
  size.conv.activation = options.activation;
  if (around.norm) size.norm_activation = around.norm->activation;
  size.residual = options.residual.defined();
  size.depth_to_space = around.depth_to_space;
  size.drop_first_frame = around.drop_first_frame;
  return size;
}

}  // namespace

std::optional<ScratchBlocks> CudaOpScratch::NormConv(const NormConvSize& size) const {
  const std::optional<WinogradPlan> plan = PlanWinograd(context_->properties(), size);
  if (!plan.has_value()) return std::nullopt;
  return ScratchBlocks({plan->factor_bytes, plan->sum_bytes});
}

absl::StatusOr<Tensor> CudaDevice::NormConv(Tensor x, const ConvWeight& weight,
                                            const ConvOptions& options,
                                            const NormConvOptions& around) {
  LTX_ASSIGN_OR_RETURN(const ConvOperands operands, CheckConv("NormConv", x, weight, options));
  std::optional<WinogradPlan> plan =
      PlanWinograd(context_->properties(), NormConvSizeOf(operands, weight, options, around));
  if (!plan.has_value()) return Device::NormConv(std::move(x), weight, options, around);

  const Shape shape = SpaceOfDepth(operands.shape, around.depth_to_space, around.drop_first_frame);
  Tensor y = around.into;
  if (!y.defined()) {
    LTX_ASSIGN_OR_RETURN(y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  } else if (y.shape() != shape || y.dtype() != x.dtype()) {
    return OperandError("NormConv", absl::StrCat("into must be ", shape.ToString()), {&x, &y});
  }
  LTX_ASSIGN_OR_RETURN(const Tensor factors, context_->Workspace(plan->factor_bytes));
  LTX_ASSIGN_OR_RETURN(const Tensor sums, context_->Workspace(plan->sum_bytes));
  WinogradInputTask& input = plan->input;
  WinogradConvTask& conv = plan->conv;
  input.out = factors.raw();
  input.normalizes = around.norm.has_value();
  if (around.norm) input.epsilon = around.norm->epsilon;
  conv.factors = factors.raw();
  conv.weight = operands.conv->weight.raw();
  conv.sums = sums.raw();
  conv.bias = operands.conv->bias.data<float>();
  cudaStream_t stream = context_->stream();
  WinogradWeightTask kernel;
  kernel.weight = conv.weight;
  kernel.sums = sums.raw();
  kernel.block = operands.conv->weight.num_elements() / kTimeTaps;
  for (int64_t row = 0; row < x.dim(0); ++row) {
    LTX_ASSIGN_OR_RETURN(const Tensor x_row, x.Rows(row, row + 1));
    LTX_ASSIGN_OR_RETURN(const Tensor y_row, y.Rows(row, row + 1));
    input.x = x_row.raw();
    conv.y = y_row.raw();
    if (options.residual.defined()) {
      LTX_ASSIGN_OR_RETURN(const Tensor residual_row, options.residual.Rows(row, row + 1));
      conv.residual = residual_row.raw();
    }
    for (int64_t first = 0; first < plan->pairs; first += plan->step) {
      input.first_pair = conv.first_pair = first;
      input.pairs = conv.pairs = std::min(plan->step, plan->pairs - first);
      LTX_RETURN_IF_CUDA_ERROR(LaunchWinogradTransforms(input, kernel, stream));
      kernel.block = 0;
      LTX_RETURN_IF_CUDA_ERROR(
          LaunchWinogradConv(conv, context_->properties().multiProcessorCount, stream));
    }
  }
  return y;
}

}  // namespace ltx::cuda
