#ifndef LTX_KERNELS_CUDA_CUDNN_ATTENTION_H_
#define LTX_KERNELS_CUDA_CUDNN_ATTENTION_H_

#include <cudnn.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/context.h"
#include "kernels/preparation.h"

namespace ltx::cuda {

/// Fused attention by cuDNN's graph API, one plan per form of the operands. Plans take tens of
/// milliseconds to make, the first ones of a kernel hundreds (it is compiled then), so the last
/// used ones are kept, and a thread may make them ahead; cuDNN makes one at a time, however many
/// ask. One plan for several lengths would be cheaper, but cuDNN 9.19 gets them wrong: its dynamic
/// shapes compute any length as the first one, its overriding of shapes fails without a causal
/// mask.
class CudnnAttention {
 public:
  /// For the GPU `ordinal`. INTERNAL if cuDNN cannot be started.
  static absl::StatusOr<std::unique_ptr<CudnnAttention>> Create(int ordinal);
  /// Waits for a plan that is being made.
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  /// True for what cuDNN is asked to do: bf16; heads of 64, 128 or 256, values as wide; addresses
  /// of whole 16-byte packs; no key mask and no bias; a window only together with causality.
  static bool Takes(const AttentionTask& task);

  /// Runs a task that Takes(). INTERNAL with cuDNN's message if it refuses all the same;
  /// RESOURCE_EXHAUSTED if there is no workspace.
  absl::Status Run(CudaContext& context, const AttentionTask& task);

  /// Has a thread make the plans that there are not, in this order. What fails there is made again,
  /// and reported, by Run. Any thread may call.
  void MakeAhead(absl::Span<const AttentionTask> tasks);

  /// From now on Run notes the plans that it uses.
  void StartNoting() { noting_ = true; }
  /// Ends that; the plans, whose code is there as long as they are held.
  std::vector<std::shared_ptr<const void>> StopNoting();

  /// The largest workspace of any plan made so far. Any thread may ask.
  int64_t most_workspace_bytes() const {
    return most_workspace_bytes_.load(std::memory_order_relaxed);
  }
  /// Every number of a task that a plan is made for.
  using Key = std::array<int64_t, 13>;
  static Key KeyOf(const AttentionTask& task);
  /// Whether there is a plan for the task. Any thread may ask.
  bool HasPlanFor(const AttentionTask& task) const;
  /// The plans that Run has made, or waited for, so far. Any thread may ask.
  Preparation prepared() const;

 private:
  struct Plan;
  using Entry = std::pair<Key, std::shared_ptr<const Plan>>;

  CudnnAttention(int ordinal, cudnnHandle_t handle) : ordinal_(ordinal), handle_(handle) {}
  absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(cudnnHandle_t handle,
                                                       const AttentionTask& task);
  absl::StatusOr<std::shared_ptr<const Plan>> FindPlan(const AttentionTask& task);
  /// The plan if it is there, now the last used one; else null.
  std::shared_ptr<const Plan> Use(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const Key& key, std::shared_ptr<const Plan> plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// What the thread does until it is told to stop.
  void MakeWhatIsAsked();

  const int ordinal_;
  const cudnnHandle_t handle_;
  std::atomic<int64_t> most_workspace_bytes_{0};
  bool noting_ = false;
  absl::flat_hash_set<std::shared_ptr<const void>> noted_;

  mutable absl::Mutex mutex_;
  /// The last used first.
  std::list<Entry> plans_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Key, std::list<Entry>::iterator> places_ ABSL_GUARDED_BY(mutex_);
  Preparation prepared_ ABSL_GUARDED_BY(mutex_);
  /// For the thread, and what it is at.
  std::deque<AttentionTask> ahead_ ABSL_GUARDED_BY(mutex_);
  std::optional<Key> making_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  /// Starts with the first MakeAhead.
  std::thread maker_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CUDNN_ATTENTION_H_
