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

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_STRIDED_COPY_H_
