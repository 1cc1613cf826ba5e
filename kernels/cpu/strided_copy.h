#ifndef LTX_KERNELS_CPU_STRIDED_COPY_H_
#define LTX_KERNELS_CPU_STRIDED_COPY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace ltx::cpu {

/// One axis of a source: its extent, and the distance of neighbours in bytes.
struct StridedAxis {
  int64_t extent = 1;
  int64_t stride = 0;
};

/// Writes the elements of `from`, walked over `axes` with the last fastest, densely to `to`.
/// `element_bytes` is 1, 2, 4 or 8; every stride is a multiple of it.
void StridedCopy(int threads, const void* from, absl::Span<const StridedAxis> axes,
                 int64_t element_bytes, void* to);

/// Calls body with a zero of an unsigned type of this width (1, 2, 4 or 8 bytes).
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

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_STRIDED_COPY_H_
