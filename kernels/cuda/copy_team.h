#ifndef LTX_KERNELS_CUDA_COPY_TEAM_H_
#define LTX_KERNELS_CUDA_COPY_TEAM_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace ltx::cuda {

/// Threads that share the pieces of one job after another. While jobs follow each other closely, as
/// they do when a model is loaded, helpers wait awake: waking a thread takes as long as copying
/// some hundred kilobytes, and far longer where a processor has gone to sleep in the meantime.
class CopyTeam {
 public:
  /// Of the caller and `members - 1` helpers.
  explicit CopyTeam(int members);
  ~CopyTeam();
  CopyTeam(const CopyTeam&) = delete;
  CopyTeam& operator=(const CopyTeam&) = delete;

  int members() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls work(member, piece) once for each piece in [0, pieces), in that order but at the same
  /// time, by the caller (member 0) and the helpers; returns when all calls have. One caller at a
  /// time.
  void Run(int64_t pieces, absl::FunctionRef<void(int member, int64_t piece)> work);

 private:
  using Work = absl::FunctionRef<void(int, int64_t)>;

  void Help(int member);
  /// Waits for a job after the `seen`-th; false at the end.
  bool AwaitJob(uint64_t seen);
  void Share(int member, int64_t pieces, Work work);

  absl::Mutex mutex_;
  absl::CondVar changed_;
  /// Null while there is nothing to join.
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t pieces_ ABSL_GUARDED_BY(mutex_) = 0;
  /// Counts jobs; changed under the mutex, looked at without by those who wait awake.
  std::atomic<uint64_t> job_{0};
  std::atomic<bool> ended_{false};
  std::atomic<int64_t> next_piece_{0};
  /// Helpers at work on the job.
  std::atomic<int> joined_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_COPY_TEAM_H_
