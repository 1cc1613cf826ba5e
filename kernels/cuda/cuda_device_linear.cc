#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/fill_rows.h"
#include "kernels/cuda/linear_plans.h"
#include "kernels/cuda/op_scratch.h"
#include "kernels/host_copy.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// A weight [N, K] and its bias, the caller's own tensors or copies where those begin at an odd
/// address.
class DenseLinear final : public PreparedWeight {
 public:
  DType dtype = DType::kF32;
  Tensor weight;
  Tensor bias;
};

using Epilogue = LinearProblem::Epilogue;

/// What cuBLASLt is asked to do to its sums; nothing if the activation is left to a kernel of ours.
/// cuBLASLt's own GELU is good enough for a result in bf16; f32 gets ours.
std::optional<Epilogue> EpilogueFor(DType dtype, bool bias, Activation activation) {
  if (activation == Activation::kNone) return bias ? Epilogue::kBias : Epilogue::kNone;
  if (activation == Activation::kGeluTanh && dtype == DType::kBF16) {
    return bias ? Epilogue::kGeluTanhBias : Epilogue::kGeluTanh;
  }
  return std::nullopt;
}

/// The largest power of two up to kBestAlignment that divides the address.
uint32_t AlignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | kBestAlignment;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

}  // namespace

absl::StatusOr<LinearWeight> CudaDevice::PrepareLinear(const Tensor& weight, const Tensor& bias,
                                                       MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(CheckLinearWeight(weight, bias));
  auto prepared = std::make_shared<DenseLinear>();
  prepared->dtype = weight.dtype();
  const auto keep = [&](const Tensor& operand) -> absl::StatusOr<Tensor> {
    if (AlignmentOf(operand.raw()) == kBestAlignment) return operand;
    return CopyForOwner(*this, operand, owner);
  };
  LTX_ASSIGN_OR_RETURN(prepared->weight, keep(weight));
  if (bias.defined()) {
    LTX_ASSIGN_OR_RETURN(prepared->bias, keep(bias));
  }
  LinearWeight result;
  result.prepared = std::move(prepared);
  result.in_features = weight.dim(1);
  result.out_features = weight.dim(0);
  return result;
}

absl::StatusOr<Tensor> CudaDevice::Linear(const Tensor& x, const LinearWeight& weight,
                                          const LinearOptions& options) {
  LTX_RETURN_IF_ERROR(CheckFloat("Linear", x, 1));
  if (!weight.defined()) return OperandError("Linear", "needs a prepared weight", {&x});
  const auto& dense = static_cast<const DenseLinear&>(*weight.prepared);
  LTX_RETURN_IF_ERROR(CheckLinearInput(x, weight, dense.dtype));
  Shape shape = x.shape();
  shape.set_dim(-1, weight.out_features);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  LinearProblem problem;
  problem.rows = x.shape().num_rows();
  problem.in = weight.in_features;
  problem.out = weight.out_features;
  problem.dtype = x.dtype();
  problem.result_dtype = x.dtype();
  problem.x_alignment = AlignmentOf(x.raw());
  if (problem.rows == 0 || problem.out == 0) return y;
  const void* const bias = dense.bias.raw();
  if (problem.in == 0) {
    LaunchFillRows(bias, problem.rows, problem.out, y.dtype(), options.activation, y.raw(),
                   context_->stream());
    return Launched("Linear", y);
  }

  if (const auto epilogue = EpilogueFor(x.dtype(), bias != nullptr, options.activation)) {
    problem.epilogue = *epilogue;
    const absl::Status status =
        linear_plans_->Run(problem, x.raw(), dense.weight.raw(), bias, y.raw());
    if (!absl::IsUnimplemented(status) || problem.epilogue == Epilogue::kNone) {
      LTX_RETURN_IF_ERROR(status);
      return y;
    }
  }
  // Sums in f32, then bias and activation in a kernel that rounds once.
  problem.epilogue = Epilogue::kNone;
  problem.result_dtype = DType::kF32;
  Tensor sums = y;
  if (y.dtype() != DType::kF32) {
    LTX_ASSIGN_OR_RETURN(sums, Allocate(shape, DType::kF32, MemoryOwner::kWorkspace));
  }
  LTX_RETURN_IF_ERROR(
      linear_plans_->Run(problem, x.raw(), dense.weight.raw(), nullptr, sums.raw()));
  LaunchBiasActivation(y.dtype(), options.activation, sums.data<float>(), bias, y.raw(),
                       problem.rows, problem.out, context_->stream());
  return Launched("Linear", y);
}

absl::StatusOr<bool> CudaDevice::Improve() {
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  return linear_plans_->TryOthers();
}

ScratchBlocks CudaOpScratch::Linear(const LinearSize& size) const {
  if (size.rows == 0 || size.out == 0 || size.in == 0) return 0;
  if (!context_->MakeCurrent().ok()) return 0;
  LinearProblem problem;
  problem.rows = size.rows;
  problem.in = size.in;
  problem.out = size.out;
  problem.dtype = size.dtype;
  problem.result_dtype = size.dtype;
  if (const auto epilogue = EpilogueFor(size.dtype, size.bias, size.activation)) {
    problem.epilogue = *epilogue;
    const std::optional<int64_t> workspace = linear_plans_->WorkspaceBytesOf(problem);
    if (workspace.has_value() || problem.epilogue == Epilogue::kNone) return workspace.value_or(0);
  }
  problem.epilogue = Epilogue::kNone;
  problem.result_dtype = DType::kF32;
  // Of sums in f32 that a kernel rounds afterwards.
  const int64_t sums_bytes =
      size.dtype == DType::kF32 ? 0 : size.rows * size.out * SizeOf(DType::kF32);
  return {sums_bytes, linear_plans_->WorkspaceBytesOf(problem).value_or(0)};
}

}  // namespace ltx::cuda
