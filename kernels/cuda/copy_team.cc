#include "kernels/cuda/copy_team.h"

#include <chrono>
#include <utility>

namespace ltx::cuda {
namespace {

/// How long a helper waits awake: the tensors of a model follow each other within it, requests do
/// not.
constexpr std::chrono::microseconds kAwake(300);
/// Looks at the counter of pieces between two at the clock.
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
  Finish();
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    changed_.SignalAll();
  }
  for (std::thread& helper : helpers_) helper.join();
}

void CopyTeam::Post(int64_t pieces, Work work) {
  if (pieces == 0) return;
  auto job = std::make_shared<Job>(pieces, std::move(work));
  unfinished_ += pieces;
  absl::MutexLock lock(&mutex_);
  jobs_.push_back(std::move(job));
  open_ += pieces;
  changed_.SignalAll();
}

bool CopyTeam::DoPiece(int member) {
  std::shared_ptr<Job> job;
  int64_t piece = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (jobs_.empty()) return false;
    job = jobs_.front();
    piece = job->next++;
    if (job->next == job->pieces) jobs_.pop_front();
    --open_;
  }
  job->work(member, piece);
  // Whoever is last lets go of what the work holds.
  if (--job->left == 0) job->work = nullptr;
  --unfinished_;
  return true;
}

void CopyTeam::Finish() {
  while (DoPiece(0)) {
  }
  // All pieces are taken, so the others are at their last one.
  while (unfinished_ > 0) Pause();
}

void CopyTeam::Run(int64_t pieces, absl::FunctionRef<void(int, int64_t)> work) {
  Post(pieces, work);
  Finish();
}

bool CopyTeam::AwaitPiece() {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (ended_) return false;
      if (open_ > 0) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  absl::MutexLock lock(&mutex_);
  while (open_ == 0 && !ended_) changed_.Wait(&mutex_);
  return !ended_;
}

void CopyTeam::Help(int member) {
  while (AwaitPiece()) {
    while (DoPiece(member)) {
    }
  }
}

}  // namespace ltx::cuda
