#ifndef LTX_KERNELS_PREPARATION_H_
#define LTX_KERNELS_PREPARATION_H_

#include <cstdint>

namespace ltx {

/// What a computation does the first time only, for later ones to find. Counts, not seconds.
struct Preparation {
  /// Plans of fused attention.
  int64_t attentions = 0;
  /// Computations recorded, for later ones to be replayed.
  int64_t recorded = 0;

  bool any() const { return attentions + recorded > 0; }

  Preparation& operator+=(const Preparation& other) {
    attentions += other.attentions;
    recorded += other.recorded;
    return *this;
  }
  /// What came in addition since `earlier`.
  friend Preparation operator-(const Preparation& later, const Preparation& earlier) {
    return {later.attentions - earlier.attentions, later.recorded - earlier.recorded};
  }
};

}  // namespace ltx

#endif  // LTX_KERNELS_PREPARATION_H_
