#include "kernels/cuda/staged_uploads.h"

#include <cstdint>
#include <utility>

#include "kernels/allocation.h"
#include "kernels/cuda/staging.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {

StagedUploads::~StagedUploads() { context_->staging().Settle(); }

absl::Status StagedUploads::Add(std::shared_ptr<const ByteSource> source, const Tensor& tensor) {
  LTX_RETURN_IF_ERROR(failure());
  LTX_RETURN_IF_ERROR(CheckTransfer("upload", tensor, static_cast<size_t>(source->size())));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  Staging::Task task;
  task.bytes = tensor.num_bytes();
  task.to = tensor.raw();
  // With the tensor, whose memory would be another's otherwise before the copies are issued.
  task.read = [source = std::move(source), tensor](int64_t begin, absl::Span<uint8_t> piece) {
    return source->Read(begin, piece);
  };
  task.wanted = [this] { return !failed_.load(std::memory_order_relaxed); };
  task.failed = [this](const absl::Status& status) { Failed(status); };
  return context_->staging().Post(std::move(task), context_->upload_stream());
}

absl::Status StagedUploads::Finish() {
  context_->staging().Settle();
  return failure();
}

absl::Status StagedUploads::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

void StagedUploads::Failed(const absl::Status& status) {
  failed_.store(true, std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  failure_.Update(status);
}

}  // namespace ltx::cuda
