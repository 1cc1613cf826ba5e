#include "kernels/shape_recorder.h"

#include <algorithm>
#include <utility>

#include "kernels/status_macros.h"

namespace ltx {

absl::StatusOr<void*> ShapeRecorder::Segments::Allocate(int64_t bytes) {
  recorder_->Add(bytes);
  const uintptr_t segment = next_;
  next_ += static_cast<uintptr_t>(bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is all that there is.
  return reinterpret_cast<void*>(segment);
}

void ShapeRecorder::Segments::Free(void* /*segment*/, int64_t bytes) { recorder_->Add(-bytes); }

void ShapeRecorder::Assume(int64_t bytes, std::vector<int64_t> segments) {
  assumed_ = bytes;
  assumed_segments_ = std::move(segments);
  Add(0);
}

void ShapeRecorder::Add(int64_t bytes) {
  held_ += bytes;
  const int64_t due = std::max<int64_t>(0, held_ - assumed_);
  if (due > booked_) ledger_->Add(MemoryOwner::kRecordings, due - booked_);
  if (due < booked_) ledger_->Remove(MemoryOwner::kRecordings, booked_ - due);
  booked_ = due;
}

std::vector<int64_t> ShapeRecorder::segments() const {
  const std::shared_ptr<cuda::MemoryPool> pool = pool_.lock();
  return pool == nullptr ? std::vector<int64_t>() : pool->segments();
}

absl::StatusOr<std::shared_ptr<cuda::MemoryPool>> ShapeRecorder::Pool() {
  std::shared_ptr<cuda::MemoryPool> pool = pool_.lock();
  if (pool == nullptr) {
    pool = std::make_shared<cuda::MemoryPool>(&segments_);
    for (const int64_t bytes : assumed_segments_) {
      LTX_RETURN_IF_ERROR(pool->Reserve(bytes).status());
    }
    pool_ = pool;
  }
  return pool;
}

}  // namespace ltx
