#include "kernels/cuda/copy_team.h"

#include <chrono>

namespace ltx::cuda {
namespace {

/// How long a helper waits awake: the tensors of a model follow each other within it, requests do
/// not.
constexpr std::chrono::microseconds kAwake(300);
/// Looks at the job counter between two at the clock.
constexpr int kLooks = 64;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

CopyTeam::CopyTeam(int members) {
  for (int member = 1; member < members; ++member) {
    helpers_.emplace_back([this, member] { Help(member); });
  }
}

CopyTeam::~CopyTeam() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    changed_.SignalAll();
  }
  for (std::thread& helper : helpers_) helper.join();
}

void CopyTeam::Share(int member, int64_t pieces, Work work) {
  for (int64_t piece = next_piece_++; piece < pieces; piece = next_piece_++) work(member, piece);
}

void CopyTeam::Run(int64_t pieces, Work work) {
  {
    absl::MutexLock lock(&mutex_);
    work_ = &work;
    pieces_ = pieces;
    next_piece_ = 0;
    ++job_;
    changed_.SignalAll();
  }
  Share(0, pieces, work);
  {
    absl::MutexLock lock(&mutex_);
    work_ = nullptr;
  }
  // All pieces are taken, so those who joined are at their last one.
  while (joined_.load(std::memory_order_acquire) > 0) Pause();
}

bool CopyTeam::AwaitJob(uint64_t seen) {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (ended_) return false;
      if (job_.load(std::memory_order_acquire) != seen) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  absl::MutexLock lock(&mutex_);
  while (job_ == seen && !ended_) changed_.Wait(&mutex_);
  return !ended_;
}

void CopyTeam::Help(int member) {
  uint64_t seen = 0;
  while (AwaitJob(seen)) {
    const Work* work = nullptr;
    int64_t pieces = 0;
    {
      absl::MutexLock lock(&mutex_);
      seen = job_;
      work = work_;
      pieces = pieces_;
      // The job may be over already.
      if (work != nullptr) ++joined_;
    }
    if (work == nullptr) continue;
    Share(member, pieces, *work);
    joined_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace ltx::cuda
