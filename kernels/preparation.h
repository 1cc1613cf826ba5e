#ifndef LTX_KERNELS_PREPARATION_H_
#define LTX_KERNELS_PREPARATION_H_

#include <cstdint>

namespace ltx {

/// What a computation does the first time only, for later ones to find. Counts, not seconds.
struct Preparation {
  /// Matrix products whose algorithm was chosen by trying several, and the multiply-adds of one run
  /// of each.
  int64_t products = 0;
  double product_work = 0;
  /// Plans of fused attention.
  int64_t attentions = 0;
  /// Computations that went to the device operation by operation though later ones are replayed,
  /// and those that were recorded for that.
  int64_t issued = 0;
  int64_t recorded = 0;

  bool any() const { return products + attentions + issued + recorded > 0; }

  Preparation& operator+=(const Preparation& other) {
    products += other.products;
    product_work += other.product_work;
    attentions += other.attentions;
    issued += other.issued;
    recorded += other.recorded;
    return *this;
  }
  /// What came in addition since `earlier`.
  friend Preparation operator-(const Preparation& later, const Preparation& earlier) {
    return {later.products - earlier.products, later.product_work - earlier.product_work,
            later.attentions - earlier.attentions, later.issued - earlier.issued,
            later.recorded - earlier.recorded};
  }
};

}  // namespace ltx

#endif  // LTX_KERNELS_PREPARATION_H_
