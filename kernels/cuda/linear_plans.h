#ifndef LTX_KERNELS_CUDA_LINEAR_PLANS_H_
#define LTX_KERNELS_CUDA_LINEAR_PLANS_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/context.h"
#include "kernels/dtype.h"
#include "kernels/preparation.h"

namespace ltx::cuda {

/// The most that cuBLASLt's kernels make use of: what it is told of weights and of tensors as the
/// pool hands them out.
inline constexpr uint32_t kBestAlignment = 256;

/// y [rows, out] = f(x [rows, in] W^T + bias), all dense, W [out, in].
struct LinearProblem {
  /// What cuBLASLt does to a sum before it rounds it.
  enum class Epilogue : uint8_t { kNone, kBias, kGeluTanh, kGeluTanhBias };

  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  /// Of x, W and bias: f32 (multiplied as f32, not TF32) or bf16; sums are f32.
  DType dtype = DType::kF32;
  DType result_dtype = DType::kF32;
  Epilogue epilogue = Epilogue::kNone;
  /// Bytes that the address of x is a multiple of; up to kBestAlignment.
  uint32_t x_alignment = kBestAlignment;

  /// Multiply-adds.
  double work() const {
    return static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }

  friend bool operator==(const LinearProblem& a, const LinearProblem& b) {
    return a.rows == b.rows && a.in == b.in && a.out == b.out && a.dtype == b.dtype &&
           a.result_dtype == b.result_dtype && a.epilogue == b.epilogue &&
           a.x_alignment == b.x_alignment;
  }
  template <typename H>
  friend H AbslHashValue(H hash, const LinearProblem& p) {
    return H::combine(std::move(hash), p.rows, p.in, p.out, p.dtype, p.result_dtype, p.epilogue,
                      p.x_alignment);
  }
};

/// Matrix products by cuBLASLt, with the algorithm for each problem chosen at its first use and
/// kept: of what the library's heuristic proposes, the fastest one that yields the same bits as its
/// first proposal on the operands at hand. So the choice may differ between two processes, results
/// do not.
class LinearPlans {
 public:
  /// `context` must outlive this.
  explicit LinearPlans(CudaContext* context);
  ~LinearPlans();

  /// Enqueues the product. UNIMPLEMENTED if cuBLASLt has no algorithm with this epilogue for the
  /// problem. Extents must be positive.
  absl::Status Run(const LinearProblem& problem, const void* x, const void* weight,
                   const void* bias, void* y);

  struct Needs {
    /// Scratch of the algorithm; before one is chosen, the most of those proposed. Nothing if Run
    /// would answer UNIMPLEMENTED.
    std::optional<int64_t> workspace_bytes;
    /// What trying several algorithms takes besides; 0: nothing is left to choose.
    int64_t trial_bytes = 0;
  };
  /// What Run would need for the problem now, however x is aligned. Any thread may ask, beside Run.
  Needs NeedsOf(LinearProblem problem);

  /// The choices made so far. Any thread may ask.
  Preparation prepared() const;

 private:
  struct Operands {
    const void* x;
    const void* weight;
    void* y;
  };
  class Plan;

  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const LinearProblem& problem,
                                                 const void* bias) const;
  /// Times the candidates of `plan` and keeps the best.
  absl::Status Tune(const LinearProblem& problem, const Operands& operands, Plan* plan);
  /// Notes what NeedsOf is to say of a problem that has a plan, and whether that took trials.
  void Remember(LinearProblem problem, const Plan& plan, bool chosen);
  absl::Status RunCandidate(const Plan& plan, size_t candidate, const Operands& operands);

  CudaContext* const context_;
  absl::flat_hash_map<LinearProblem, std::unique_ptr<Plan>> plans_;
  mutable absl::Mutex mutex_;
  /// Answers of NeedsOf.
  absl::flat_hash_map<LinearProblem, Needs> needs_ ABSL_GUARDED_BY(mutex_);
  Preparation prepared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_LINEAR_PLANS_H_
