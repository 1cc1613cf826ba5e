#ifndef LTX_KERNELS_CUDA_STAGED_UPLOADS_H_
#define LTX_KERNELS_CUDA_STAGED_UPLOADS_H_

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/context.h"
#include "kernels/tensor.h"
#include "kernels/uploads.h"

namespace ltx::cuda {

/// Uploads by the helper threads of the context's staging, any number of tensors at once. Copies go
/// into the stream of the lane that is current at Add; CudaContext::stream() waits until they have.
class StagedUploads final : public Uploads {
 public:
  /// `context` must outlive this.
  explicit StagedUploads(CudaContext* context) : context_(context) {}
  ~StagedUploads() override;

  absl::Status Add(std::shared_ptr<const ByteSource> source, const Tensor& tensor) override;
  absl::Status Finish() override;

 private:
  absl::Status failure() const;
  void Failed(const absl::Status& status);

  CudaContext* const context_;
  std::atomic<bool> failed_{false};
  mutable absl::Mutex mutex_;
  /// The first one.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_STAGED_UPLOADS_H_
