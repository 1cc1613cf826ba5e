#ifndef LTX_KERNELS_UPLOADS_H_
#define LTX_KERNELS_UPLOADS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/tensor.h"

namespace ltx {

/// Bytes that are fetched where they are wanted, several pieces at once by several threads: a part
/// of a file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  /// Fills `to` with the bytes from `begin` on; [begin, begin + to.size()) lies within [0, size()).
  /// Any thread. The errors of what the bytes come from.
  virtual absl::Status Read(int64_t begin, absl::Span<uint8_t> to) const = 0;
};

/// Tensors that are being filled, for a model that is loaded: a device may be busy with many of
/// them at once, while the caller allocates and adds the next. Made by Device::StartUploads, used
/// by the thread that issues operations, and gone before the device is.
class Uploads {
 public:
  Uploads() = default;
  /// Waits as Finish does, and drops a failure that nobody has asked for.
  virtual ~Uploads() = default;
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  /// Fills `tensor` from the whole of `source`, not necessarily before this returns. Operations
  /// that are issued afterwards wait for it; should it fail, they see anything. INTERNAL if the
  /// sizes differ; the failures of uploads added before.
  virtual absl::Status Add(std::shared_ptr<const ByteSource> source, const Tensor& tensor) = 0;
  /// Waits until all sources have been read. The first failure of any upload so far; after one,
  /// others need not have been done.
  virtual absl::Status Finish() = 0;
};

}  // namespace ltx

#endif  // LTX_KERNELS_UPLOADS_H_
