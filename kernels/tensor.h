#ifndef LTX_KERNELS_TENSOR_H_
#define LTX_KERNELS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace ltx {

/// A block of device memory. A device derives from it to release the block and tell its ledger.
class Storage {
 public:
  Storage(void* data, int64_t bytes, bool host_accessible)
      : data_(data), bytes_(bytes), host_accessible_(host_accessible) {}
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  bool host_accessible() const { return host_accessible_; }

 private:
  void* const data_;
  const int64_t bytes_;
  const bool host_accessible_;
};

/// A dense row-major array on a device: shape, dtype and shared storage. A value type: copies share
/// the storage, and the last one frees it. An undefined tensor (default constructed) stands for
/// "not given". Tensors are immutable by convention once an operation has returned them; operations
/// return new ones.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<const Storage> storage, int64_t byte_offset, const Shape& shape,
         DType dtype)
      : storage_(std::move(storage)), byte_offset_(byte_offset), shape_(shape), dtype_(dtype) {}

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_.dim(axis); }
  int64_t num_elements() const { return shape_.num_elements(); }
  int64_t num_bytes() const { return num_elements() * SizeOf(dtype_); }
  bool host_accessible() const { return storage_ != nullptr && storage_->host_accessible(); }

  /// Address in device memory; host code may follow it only if host_accessible().
  void* raw() const {
    return storage_ == nullptr ? nullptr : static_cast<std::byte*>(storage_->data()) + byte_offset_;
  }
  template <typename T>
  T* data() const {
    return static_cast<T*>(raw());
  }

  /// True if other tensors share the elements.
  bool is_shared() const { return storage_.use_count() > 1; }

  /// The same elements under another shape. INTERNAL if the element counts differ.
  absl::StatusOr<Tensor> Reshape(const Shape& shape) const;

  /// View of [begin, end) of the outermost axis. INTERNAL if out of range.
  absl::StatusOr<Tensor> Rows(int64_t begin, int64_t end) const;

 private:
  std::shared_ptr<const Storage> storage_;
  int64_t byte_offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::kF32;
};

}  // namespace ltx

#endif  // LTX_KERNELS_TENSOR_H_
