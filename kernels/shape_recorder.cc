#include "kernels/shape_recorder.h"

#include <algorithm>

namespace ltx {

absl::StatusOr<void*> ShapeRecorder::Segments::Allocate(int64_t bytes) {
  recorder_->Add(bytes);
  const uintptr_t segment = next_;
  next_ += static_cast<uintptr_t>(bytes);
  return reinterpret_cast<void*>(segment);
}

void ShapeRecorder::Segments::Free(void* /*segment*/, int64_t bytes) { recorder_->Add(-bytes); }

void ShapeRecorder::Assume(int64_t bytes) {
  assumed_ = bytes;
  Add(0);
}

void ShapeRecorder::Add(int64_t bytes) {
  held_ += bytes;
  const int64_t due = std::max<int64_t>(0, held_ - assumed_);
  if (due > booked_) ledger_->Add(MemoryOwner::kRecordings, due - booked_);
  if (due < booked_) ledger_->Remove(MemoryOwner::kRecordings, booked_ - due);
  booked_ = due;
}

std::shared_ptr<cuda::MemoryPool> ShapeRecorder::Pool() {
  std::shared_ptr<cuda::MemoryPool> pool = pool_.lock();
  if (pool == nullptr) {
    pool = std::make_shared<cuda::MemoryPool>(&segments_);
    pool_ = pool;
  }
  return pool;
}

}  // namespace ltx
