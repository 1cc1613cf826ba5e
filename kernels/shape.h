#ifndef LTX_KERNELS_SHAPE_H_
#define LTX_KERNELS_SHAPE_H_

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/types/span.h"

namespace ltx {

/// Extents of a tensor, outermost first. At most six axes (the largest use is an unpatchify
/// permutation), kept inline: a shape never allocates. A shape of rank 0 has one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(absl::MakeConstSpan(dims.begin(), dims.size())) {}
  explicit Shape(absl::Span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    assert(dims.size() <= kMaxRank);
    for (int i = 0; i < rank_; ++i) dims_[i] = dims[i];
  }

  int rank() const { return rank_; }
  /// Extent of `axis`; a negative axis counts from the end.
  int64_t dim(int axis) const {
    const int index = axis < 0 ? axis + rank_ : axis;
    assert(index >= 0 && index < rank_);
    return dims_[index];
  }
  void set_dim(int axis, int64_t extent) { dims_[axis < 0 ? axis + rank_ : axis] = extent; }
  absl::Span<const int64_t> dims() const { return absl::MakeConstSpan(dims_.data(), rank_); }

  /// Product of all extents.
  int64_t num_elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }
  /// Product of all extents but the last: how many rows of the innermost axis there are.
  int64_t num_rows() const {
    int64_t product = 1;
    for (int i = 0; i + 1 < rank_; ++i) product *= dims_[i];
    return product;
  }

  /// "[2, 3, 4]".
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace ltx

#endif  // LTX_KERNELS_SHAPE_H_
