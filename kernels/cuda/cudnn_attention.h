#ifndef LTX_KERNELS_CUDA_CUDNN_ATTENTION_H_
#define LTX_KERNELS_CUDA_CUDNN_ATTENTION_H_

#include <cudnn.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/context.h"
#include "kernels/preparation.h"

namespace ltx::cuda {

/// Fused attention by cuDNN's graph API, one plan per form of the operands. Plans take tens of
/// milliseconds to make, the first ones of a kernel hundreds (it is compiled then), so the last
/// used ones are kept. One plan for several lengths would be cheaper, but cuDNN 9.19 gets them
/// wrong: its dynamic shapes compute any length as the first one, its overriding of shapes fails
/// without a causal mask.
class CudnnAttention {
 public:
  /// INTERNAL if cuDNN cannot be started.
  static absl::StatusOr<std::unique_ptr<CudnnAttention>> Create();
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  /// True for what cuDNN is asked to do: bf16; heads of 64, 128 or 256, values as wide; addresses
  /// of whole 16-byte packs; no key mask and no bias; a window only together with causality.
  static bool Takes(const AttentionTask& task);

  /// Runs a task that Takes(). INTERNAL with cuDNN's message if it refuses all the same;
  /// RESOURCE_EXHAUSTED if there is no workspace.
  absl::Status Run(CudaContext& context, const AttentionTask& task);

  /// The largest workspace of any plan made so far. Any thread may ask.
  int64_t most_workspace_bytes() const {
    return most_workspace_bytes_.load(std::memory_order_relaxed);
  }
  /// The numbers of a task but for pitches and scale.
  using Extents = std::array<int64_t, 8>;
  static Extents ExtentsOf(const AttentionTask& task);
  /// Whether there is a plan for these extents, whatever the pitches. Any thread may ask.
  bool HasPlanFor(const AttentionTask& task) const;
  /// The plans made so far. Any thread may ask.
  Preparation prepared() const;

 private:
  struct Plan;
  /// Every number of a task that a plan is made for: the extents, and pitches and scale.
  using Key = std::pair<Extents, std::array<int64_t, 5>>;
  using Entry = std::pair<Key, std::unique_ptr<Plan>>;

  explicit CudnnAttention(cudnnHandle_t handle);
  static Key KeyOf(const AttentionTask& task);
  /// `plans` more with these extents.
  void Count(const Extents& extents, int plans);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const AttentionTask& task) const;
  absl::StatusOr<const Plan*> FindPlan(const AttentionTask& task);

  const cudnnHandle_t handle_;
  std::atomic<int64_t> most_workspace_bytes_{0};
  /// The last used first.
  std::list<Entry> plans_;
  absl::flat_hash_map<Key, std::list<Entry>::iterator> places_;
  mutable absl::Mutex mutex_;
  /// How many of the plans have such extents.
  absl::flat_hash_map<Extents, int> extents_ ABSL_GUARDED_BY(mutex_);
  Preparation prepared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CUDNN_ATTENTION_H_
