#include <cmath>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/statistics.h"
#include "kernels/cpu/vector.h"
#include "kernels/op_check.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// Finds the table rows of a token; a batch or head axis of extent 1 serves all.
template <typename T>
class TableLookup {
 public:
  explicit TableLookup(const RopeTable& rope) : cos_(rope.cos.data<T>()), sin_(rope.sin.data<T>()) {
    if (!rope.defined()) return;
    const Shape& shape = rope.cos.shape();
    const bool split = rope.kind == RopeTable::Kind::kSplit;
    row_ = shape.dim(-1);
    const int64_t plane = shape.dim(-2) * row_;
    head_stride_ = split && shape.dim(1) > 1 ? plane : 0;
    batch_stride_ = shape.dim(0) > 1 ? (split ? shape.dim(1) : 1) * plane : 0;
  }
  const T* Cos(int64_t batch, int64_t token, int64_t head) const {
    return cos_ + Offset(batch, token, head);
  }
  const T* Sin(int64_t batch, int64_t token, int64_t head) const {
    return sin_ + Offset(batch, token, head);
  }

 private:
  int64_t Offset(int64_t batch, int64_t token, int64_t head) const {
    return batch * batch_stride_ + head * head_stride_ + token * row_;
  }
  const T* cos_;
  const T* sin_;
  int64_t row_ = 0;
  int64_t head_stride_ = 0;
  int64_t batch_stride_ = 0;
};

/// What to multiply x by: per head one over its root mean square, and a weight per element.
template <typename T>
struct Scaling {
  float inverse_rms;
  const T* weight;  // null: none
  float base;       // 1 for (1 + weight), else 0

  template <typename Lanes>
  Vec operator()(const T* source, int64_t i, Lanes lanes) const {
    const Vec v = lanes.Load(source + i) * Broadcast(inverse_rms);
    return weight == nullptr ? v : v * (Broadcast(base) + lanes.Load(weight + i));
  }
};

/// One head, pairs (j, j + half). `target` may be `source`, as everywhere below.
template <typename T>
void RotateSplit(const T* source, T* target, int64_t half, const Scaling<T>& scaling, const T* cos,
                 const T* sin) {
  const Scaling<T> second{scaling.inverse_rms,
                          scaling.weight == nullptr ? nullptr : scaling.weight + half,
                          scaling.base};
  ForEachGroup(half, [&](int64_t i, auto lanes) {
    const Vec a = scaling(source, i, lanes);
    const Vec b = second(source + half, i, lanes);
    const Vec c = lanes.Load(cos + i);
    const Vec s = lanes.Load(sin + i);
    lanes.Store(target + i, a * c - b * s);
    lanes.Store(target + half + i, b * c + a * s);
  });
}

/// `count` elements from `begin` of the row, pairs (2j, 2j + 1).
template <typename T>
void RotateInterleaved(const T* source, T* target, int64_t count, const Scaling<T>& scaling,
                       const T* cos, const T* sin) {
  const Vec even_negative = _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f);
  ForEachGroup(count, [&](int64_t i, auto lanes) {
    const Vec v = scaling(source, i, lanes);
    const Vec s = _mm256_xor_ps(lanes.Load(sin + i), even_negative);
    lanes.Store(target + i, v * lanes.Load(cos + i) + SwapPairs(v) * s);
  });
}

/// Normalisation of NormRope, or none.
struct NormChoice {
  enum class Kind : uint8_t { kNone, kFullWidth, kPerHead } kind = Kind::kNone;
  Tensor weight;
  float base = 0.0f;
  float epsilon = 0.0f;
};

/// Rotates (if tables are given) the token's row after scaling it.
template <typename T>
void NormRopeRow(const T* source, T* target, int64_t batch, int64_t token, int64_t heads,
                 int64_t head_width, const NormChoice& norm, const RopeTable& rope,
                 const TableLookup<T>& tables) {
  const bool per_head = norm.kind == NormChoice::Kind::kPerHead;
  const T* weight = norm.weight.data<T>();
  float inverse = 1.0f;
  if (norm.kind == NormChoice::Kind::kFullWidth) {
    inverse = InverseRms(source, heads * head_width, norm.epsilon);
  }
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t offset = head * head_width;
    const T* x = source + offset;
    T* y = target + offset;
    if (per_head) inverse = InverseRms(x, head_width, norm.epsilon);
    const Scaling<T> scaling{inverse, weight == nullptr || per_head ? weight : weight + offset,
                             norm.base};
    if (!rope.defined()) {
      ForEachGroup(head_width,
                   [&](int64_t i, auto lanes) { lanes.Store(y + i, scaling(x, i, lanes)); });
    } else if (rope.kind == RopeTable::Kind::kSplit) {
      RotateSplit(x, y, head_width / 2, scaling, tables.Cos(batch, token, head),
                  tables.Sin(batch, token, head));
    } else {
      RotateInterleaved(x, y, head_width, scaling, tables.Cos(batch, token, 0) + offset,
                        tables.Sin(batch, token, 0) + offset);
    }
  }
}

/// `y` is a contiguous tensor of x's extents, or x itself.
void NormRopeAll(int threads, const Columns& x, const Columns& y, int64_t heads,
                 const NormChoice& norm, const RopeTable& rope) {
  const int64_t tokens = x.tensor.dim(1);
  DispatchFloat(x.tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    const TableLookup<T> tables(rope);
    ParallelFor(threads, x.tensor.dim(0) * tokens, RowGrain(kCheapGrain, x.width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    NormRopeRow(x.data<T>() + row * x.pitch(), y.data<T>() + row * y.pitch(),
                                row / tokens, row % tokens, heads, x.width / heads, norm, rope,
                                tables);
                  }
                });
  });
}

NormChoice NormChoiceOf(const NormRopeOptions& options) {
  NormChoice norm;
  norm.kind = options.span == NormRopeOptions::Span::kPerHead ? NormChoice::Kind::kPerHead
                                                              : NormChoice::Kind::kFullWidth;
  norm.weight = options.weight;
  norm.base = options.one_plus_weight ? 1.0f : 0.0f;
  norm.epsilon = options.epsilon;
  return norm;
}

}  // namespace

absl::StatusOr<Tensor> CpuDevice::NormRope(const Tensor& x, const NormRopeOptions& options) {
  LTX_RETURN_IF_ERROR(CheckNormRope("NormRope", x, options));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  NormRopeAll(threads_, x, y, options.heads, NormChoiceOf(options), options.rope);
  return y;
}

absl::Status CpuDevice::NormRopeInPlace(absl::Span<const NormRopePart> parts) {
  for (const NormRopePart& part : parts) {
    LTX_RETURN_IF_ERROR(CheckNormRope("NormRopeInPlace", part.x, part.options));
  }
  for (const NormRopePart& part : parts) {
    NormRopeAll(threads_, part.x, part.x, part.options.heads, NormChoiceOf(part.options),
                part.options.rope);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> CpuDevice::Rope(const Tensor& x, int64_t heads, const RopeTable& rope) {
  LTX_RETURN_IF_ERROR(CheckRope(x, heads, rope));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(x.shape(), x.dtype(), MemoryOwner::kActivations));
  NormRopeAll(threads_, x, y, heads, NormChoice{}, rope);
  return y;
}

absl::Status CpuDevice::HeadGate(Tensor* x, const Columns& logits) {
  LTX_RETURN_IF_ERROR(CheckHeadGate(*x, logits));
  const int64_t heads = logits.width;
  const int64_t width = x->dim(2) / heads;
  DispatchFloat(x->dtype(), [&](auto element) {
    using T = decltype(element);
    ParallelFor(threads_, x->shape().num_rows() * heads, RowGrain(kCheapGrain, width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t head = begin; head < end; ++head) {
                    const auto logit = static_cast<float>(
                        logits.data<T>()[head / heads * logits.pitch() + head % heads]);
                    const Vec gate = Broadcast(2.0f) * Sigmoid(Broadcast(logit));
                    T* const values = x->data<T>() + head * width;
                    ForEachGroup(width, [&](int64_t i, auto lanes) {
                      lanes.Store(values + i, lanes.Load(values + i) * gate);
                    });
                  }
                });
  });
  return absl::OkStatus();
}

}  // namespace ltx::cpu
