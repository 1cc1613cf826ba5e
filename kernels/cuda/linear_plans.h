#ifndef LTX_KERNELS_CUDA_LINEAR_PLANS_H_
#define LTX_KERNELS_CUDA_LINEAR_PLANS_H_

#include <cublasLt.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/context.h"
#include "kernels/dtype.h"

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

/// Which algorithm a product has, for those who keep work that was issued with it.
struct ProductChoice {
  /// A better one has been found since the first use.
  std::atomic<bool> changed{false};
};

/// Matrix products by cuBLASLt. A problem runs with the first proposal of the library's heuristic
/// until TryOthers has found a faster algorithm that yields the same bits. So the choice may differ
/// between two processes, results do not.
class LinearPlans {
 public:
  /// `context` must outlive this.
  explicit LinearPlans(CudaContext* context);
  ~LinearPlans();

  /// Enqueues the product. UNIMPLEMENTED if cuBLASLt has no algorithm with this epilogue for the
  /// problem. Extents must be positive.
  absl::Status Run(const LinearProblem& problem, const void* x, const void* weight,
                   const void* bias, void* y);

  /// Times the other proposals for one problem that has run, on operands of its own, and waits:
  /// milliseconds to a few tenths of a second. False if there is nothing left to try. Without
  /// memory for the operands the first proposal stands.
  absl::StatusOr<bool> TryOthers();

  /// From now on Run notes what it runs with and might yet be changed.
  void StartNoting() { noting_ = true; }
  /// Ends that; the notes.
  std::vector<std::shared_ptr<const ProductChoice>> StopNoting();

  /// Scratch of Run for the problem now, however x is aligned; none if it would answer
  /// UNIMPLEMENTED. Any thread may ask, beside Run.
  std::optional<int64_t> WorkspaceBytesOf(LinearProblem problem);

 private:
  struct Operands {
    const void* x;
    const void* weight;
    void* y;
  };
  class Plan;

  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const LinearProblem& problem,
                                                 const void* bias) const;
  /// Puts the fastest candidate of those that agree with the first one in front.
  absl::Status Tune(Plan* plan);
  /// Notes what WorkspaceBytesOf is to say of a problem that has a plan.
  void Remember(const Plan& plan);
  absl::Status RunCandidate(const Plan& plan, size_t candidate, const Operands& operands);

  CudaContext* const context_;
  absl::flat_hash_map<LinearProblem, std::shared_ptr<Plan>> plans_;
  /// Those with other proposals, the first used first.
  std::deque<std::shared_ptr<Plan>> untried_;
  bool noting_ = false;
  absl::flat_hash_set<std::shared_ptr<const ProductChoice>> noted_;
  mutable absl::Mutex mutex_;
  /// Answers of WorkspaceBytesOf.
  absl::flat_hash_map<LinearProblem, std::optional<int64_t>> workspaces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_LINEAR_PLANS_H_
