#include <array>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/guidance.h"
#include "kernels/host_copy.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

static_assert(kMaxSumTerms == kMaxWeightedTerms);

absl::StatusOr<Tensor> CudaDevice::WeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) {
  LTX_RETURN_IF_ERROR(CheckWeightedSum(terms, dtype));
  const Shape& shape = terms.front().x.shape();
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, dtype, MemoryOwner::kActivations));
  std::array<SumTerm, kMaxSumTerms> operands;
  // Per-token weights on the device, until the kernel has been issued.
  std::vector<Tensor> uploaded;
  for (size_t i = 0; i < terms.size(); ++i) {
    operands[i].x = terms[i].x.raw();
    operands[i].dtype = terms[i].x.dtype();
    if (terms[i].weights.size() == 1) {
      operands[i].weight = terms[i].weights[0];
      continue;
    }
    LTX_ASSIGN_OR_RETURN(
        const Tensor weights,
        TensorFromDoubles(*this, terms[i].weights, {static_cast<int64_t>(terms[i].weights.size())},
                          MemoryOwner::kWorkspace));
    operands[i].weights = weights.data<double>();
    uploaded.push_back(weights);
  }
  LaunchWeightedSum(operands, static_cast<int>(terms.size()), dtype, y.raw(), shape.num_rows(),
                    shape.dim(-1), context_->stream());
  return Launched("WeightedSum", y);
}

absl::StatusOr<Tensor> CudaDevice::Guide(const Tensor& cond, const Tensor& uncond,
                                         const Tensor& perturbed, const Tensor& isolated,
                                         const GuidanceScales& scales) {
  LTX_RETURN_IF_ERROR(CheckGuide(cond, uncond, perturbed, isolated));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(cond));
  const int64_t rows = cond.dim(0);
  const int64_t count = rows == 0 ? 0 : cond.num_elements() / rows;
  if (count == 0) return y;
  const GuidedPasses passes = {
      cond.raw(),        uncond.raw(), perturbed.raw(),        isolated.raw(),
      scales.cfg - 1.0f, scales.stg,   scales.modality - 1.0f,
  };
  Tensor factors;
  if (scales.rescale != 0.0f) {
    LTX_ASSIGN_OR_RETURN(factors, Allocate({rows}, DType::kF32, MemoryOwner::kWorkspace));
    LTX_ASSIGN_OR_RETURN(const Tensor scratch, Allocate({GuideScratchDoubles(rows, count)},
                                                        DType::kF64, MemoryOwner::kWorkspace));
    LaunchGuideFactors(cond.dtype(), passes, scales.rescale, rows, count, scratch.data<double>(),
                       factors.data<float>(), context_->stream());
  }
  LaunchGuide(cond.dtype(), passes, factors.data<float>(), y.raw(), rows, count,
              context_->stream());
  return Launched("Guide", y);
}

absl::StatusOr<std::vector<double>> CudaDevice::BatchDot(const Tensor& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckFloat("BatchDot", a, 1));
  LTX_RETURN_IF_ERROR(CheckSame("BatchDot", a, b));
  const int64_t rows = a.dim(0);
  std::vector<double> dots(rows, 0.0);
  const int64_t count = rows == 0 ? 0 : a.num_elements() / rows;
  if (count == 0) return dots;
  LTX_ASSIGN_OR_RETURN(const Tensor totals, Allocate({rows}, DType::kF64, MemoryOwner::kWorkspace));
  LTX_ASSIGN_OR_RETURN(const Tensor scratch, Allocate({GuideScratchDoubles(rows, count)},
                                                      DType::kF64, MemoryOwner::kWorkspace));
  LaunchBatchDot(a.dtype(), a.raw(), b.raw(), rows, count, scratch.data<double>(),
                 totals.data<double>(), context_->stream());
  LTX_RETURN_IF_ERROR(context_->CheckLaunch("BatchDot"));
  LTX_RETURN_IF_ERROR(Download(
      totals, absl::MakeSpan(reinterpret_cast<uint8_t*>(dots.data()), rows * sizeof(double))));
  return dots;
}

}  // namespace ltx::cuda
