#ifndef LTX_KERNELS_DISPATCH_WIDTH_H_
#define LTX_KERNELS_DISPATCH_WIDTH_H_

#include <cstdint>

namespace ltx {

/// Calls body with a zero of an unsigned type of this width (1, 2, 4 or 8 bytes): for operations
/// that move elements whatever they stand for.
template <typename Body>
auto DispatchWidth(int64_t bytes, const Body& body) {
  switch (bytes) {
    case 1:
      return body(uint8_t{0});
    case 2:
      return body(uint16_t{0});
    case 4:
      return body(uint32_t{0});
    default:
      return body(uint64_t{0});
  }
}

}  // namespace ltx

#endif  // LTX_KERNELS_DISPATCH_WIDTH_H_
