#ifndef LTX_KERNELS_CPU_ROW_LOOKUP_H_
#define LTX_KERNELS_CPU_ROW_LOOKUP_H_

#include "kernels/op_types.h"

namespace ltx::cpu {

/// Finds the vector of a token in checked RowVectors.
template <typename T>
class RowLookup {
 public:
  /// For the tokens of x [B, ..., D].
  RowLookup(const RowVectors& vectors, const Tensor& x)
      : rows_(vectors.rows.data<T>() + vectors.offset),
        stride_(vectors.rows.dim(1)),
        index_(vectors.index.data<int32_t>()),
        tokens_per_row_(
            vectors.rows.dim(0) == 1 || x.dim(0) == 0 ? 0 : x.shape().num_rows() / x.dim(0)) {}

  const T* Row(int64_t token) const {
    if (index_ != nullptr) return rows_ + index_[token] * stride_;
    return tokens_per_row_ == 0 ? rows_ : rows_ + token / tokens_per_row_ * stride_;
  }

 private:
  const T* rows_;
  int64_t stride_;
  const int32_t* index_;
  int64_t tokens_per_row_;  // 0: all tokens share row 0
};

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_ROW_LOOKUP_H_
