#include "kernels/cpu/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/dispatch_width.h"

namespace ltx::cpu {
namespace {

/// Shape::kMaxRank, with room for an axis in front.
constexpr int kMaxAxes = 8;

/// Axes without those of extent 1, neighbours that are dense together joined; at least two.
struct Walk {
  std::array<StridedAxis, kMaxAxes> axes;
  int count = 0;
};

Walk Simplify(absl::Span<const StridedAxis> axes) {
  Walk walk;
  for (const StridedAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (walk.count > 0) {
      StridedAxis& last = walk.axes[walk.count - 1];
      if (last.stride == axis.extent * axis.stride) {
        last = {last.extent * axis.extent, axis.stride};
        continue;
      }
    }
    walk.axes[walk.count++] = axis;
  }
  while (walk.count < 2) {
    std::copy_backward(walk.axes.begin(), walk.axes.begin() + walk.count,
                       walk.axes.begin() + walk.count + 1);
    walk.axes[0] = {1, 0};
    ++walk.count;
  }
  return walk;
}

/// Side of the squares in which a transposition goes: lines of the source and of the result stay
/// in the first-level cache meanwhile.
constexpr int64_t kSquare = 32;

/// Elements [begin, end) of an outer axis times all of an inner one. Where the inner axis strides
/// and the outer one is dense, squares.
template <typename T>
void CopyPlane(const char* from, const StridedAxis& outer, const StridedAxis& inner, int64_t begin,
               int64_t end, T* to) {
  const auto element = static_cast<int64_t>(sizeof(T));
  if (inner.stride == element) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * inner.extent, from + i * outer.stride,
                  static_cast<size_t>(inner.extent) * sizeof(T));
    }
    return;
  }
  const auto at = [&](int64_t i, int64_t j) {
    return *reinterpret_cast<const T*>(from + i * outer.stride + j * inner.stride);
  };
  if (inner.extent < 8) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < inner.extent; ++j) to[i * inner.extent + j] = at(i, j);
    }
    return;
  }
  for (int64_t i0 = begin; i0 < end; i0 += kSquare) {
    const int64_t i1 = std::min(end, i0 + kSquare);
    for (int64_t j0 = 0; j0 < inner.extent; j0 += kSquare) {
      const int64_t j1 = std::min(inner.extent, j0 + kSquare);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) to[i * inner.extent + j] = at(i, j);
      }
    }
  }
}

/// Elements per thread at least.
constexpr int64_t kGrain = int64_t{1} << 15;

template <typename T>
void CopyWalk(int threads, const char* from, const Walk& walk, T* to) {
  const StridedAxis& outer = walk.axes[walk.count - 2];
  const StridedAxis& inner = walk.axes[walk.count - 1];
  const int64_t plane = outer.extent * inner.extent;
  int64_t planes = 1;
  for (int i = 0; i < walk.count - 2; ++i) planes *= walk.axes[i].extent;
  const int64_t lines = planes * outer.extent;
  ParallelFor(threads, lines, kGrain / inner.extent + 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end;) {
      const int64_t index = line / outer.extent;
      const int64_t first = line - index * outer.extent;
      const int64_t stop = std::min(outer.extent, first + end - line);
      int64_t offset = 0;
      int64_t rest = index;
      for (int i = walk.count - 3; i >= 0; --i) {
        offset += rest % walk.axes[i].extent * walk.axes[i].stride;
        rest /= walk.axes[i].extent;
      }
      CopyPlane(from + offset, outer, inner, first, stop, to + index * plane);
      line += stop - first;
    }
  });
}

}  // namespace

void StridedCopy(int threads, const void* from, absl::Span<const StridedAxis> axes,
                 int64_t element_bytes, void* to) {
  for (const StridedAxis& axis : axes) {
    if (axis.extent == 0) return;
  }
  const Walk walk = Simplify(axes);
  // A dense innermost axis moves in the widest elements that all distances allow; memcpy takes
  // care of that, so only the element's own width matters here.
  DispatchWidth(element_bytes, [&](auto zero) {
    CopyWalk(threads, static_cast<const char*>(from), walk, static_cast<decltype(zero)*>(to));
  });
}

}  // namespace ltx::cpu
