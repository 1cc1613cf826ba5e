#ifndef LTX_KERNELS_CUDA_BATCHED_PRODUCT_H_
#define LTX_KERNELS_CUDA_BATCHED_PRODUCT_H_

#include <array>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/context.h"

namespace ltx::cuda {

/// c_i = factor * a_i b_i for i in [0, batch), or a_i b_i^T if `transposed_b`. Row-major: a [rows,
/// depth], b [depth, columns] or [columns, depth], c [rows, columns], with pitches (elements from
/// one row to the next) and steps (elements from one matrix to the next, 0 for the same one).
struct BatchedProduct {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t batch = 1;
  int64_t a_pitch = 0;
  int64_t b_pitch = 0;
  int64_t c_pitch = 0;
  int64_t a_step = 0;
  int64_t b_step = 0;
  int64_t c_step = 0;
  bool transposed_b = false;
  bool bf16 = false;       ///< Of a and b; else f32.
  bool f32_result = true;  ///< Of c; else bf16.
  float factor = 1.0f;
};

/// Runs such products by cuBLASLt, sums in f32 (of f32 operands: true f32, no TF32), and remembers
/// the algorithm for each form.
class BatchedProducts {
 public:
  /// RESOURCE_EXHAUSTED if there is no workspace; INTERNAL if cuBLASLt refuses.
  absl::Status Run(CudaContext& context, const BatchedProduct& product);
  /// The workspace that Run takes for a product of such sizes; of the addresses only their
  /// alignment counts. Any thread may ask, beside Run.
  absl::StatusOr<int64_t> WorkspaceBytes(CudaContext& context, const BatchedProduct& product);

 private:
  struct Choice {
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace_bytes;
  };
  using Key = std::array<int64_t, 11>;

  /// `description`: `product` as cuBLASLt knows it.
  template <typename Description>
  absl::StatusOr<Choice> ChoiceFor(CudaContext& context, const BatchedProduct& product,
                                   const Description& description);

  absl::Mutex mutex_;
  absl::flat_hash_map<Key, Choice> choices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_BATCHED_PRODUCT_H_
