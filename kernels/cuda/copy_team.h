#ifndef LTX_KERNELS_CUDA_COPY_TEAM_H_
#define LTX_KERNELS_CUDA_COPY_TEAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace ltx::cuda {

/// Threads that share the pieces of one job after another. Who runs out of pieces of a job goes on
/// with the next, so that a row of jobs costs no more than one long one. While jobs follow each
/// other closely, as they do when a model is loaded, helpers wait awake: waking a thread takes as
/// long as copying some hundred kilobytes, and far longer where a processor has gone to sleep in
/// the meantime.
class CopyTeam {
 public:
  using Work = std::function<void(int member, int64_t piece)>;

  /// Of the caller and `members - 1` helpers.
  explicit CopyTeam(int members);
  /// After Finish().
  ~CopyTeam();
  CopyTeam(const CopyTeam&) = delete;
  CopyTeam& operator=(const CopyTeam&) = delete;

  int members() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Has helpers call work(member, piece) once for each piece in [0, pieces), in that order but at
  /// the same time, after the jobs posted before; does not wait. `work` is gone when the last of
  /// its calls counts as done.
  void Post(int64_t pieces, Work work);
  /// Takes part, as member 0, until everything posted is done. One caller at a time.
  void Finish();
  /// Both, of work that need not outlive the call.
  void Run(int64_t pieces, absl::FunctionRef<void(int member, int64_t piece)> work);

 private:
  struct Job {
    Job(int64_t count, Work function) : pieces(count), left(count), work(std::move(function)) {}
    const int64_t pieces;
    /// The first that nobody has taken.
    int64_t next = 0;
    /// Those not done.
    std::atomic<int64_t> left;
    Work work;
  };

  void Help(int member);
  /// Waits until there is a piece to take; false at the end.
  bool AwaitPiece();
  /// Takes and does one piece; false if there is none to take.
  bool DoPiece(int member);

  absl::Mutex mutex_;
  absl::CondVar changed_;
  /// Those with pieces that nobody has taken.
  std::deque<std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  /// Pieces in jobs_; changed under the mutex, looked at without by those who wait awake.
  std::atomic<int64_t> open_{0};
  std::atomic<bool> ended_{false};
  /// Pieces posted and not done.
  std::atomic<int64_t> unfinished_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_COPY_TEAM_H_
