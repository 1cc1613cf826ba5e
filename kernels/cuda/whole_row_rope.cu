#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/cuda/row_pack.cuh"
#include "kernels/cuda/whole_row_rope.h"

// A block owns a row, a thread two packs of it that a rotation mixes. All widths are known when
// this is compiled: at the clock that full load leaves, index arithmetic at run time costs more
// than the memory access.

namespace ltx::cuda {
namespace {

using Norm = NormRopeTask::Norm;
using Kind = RopeView::Kind;

/// Rows that NormRopeWholeRows changes in place.
struct WholeRows {
  BF16* x = nullptr;
  const BF16* weight = nullptr;
  int64_t stride = 0;
  int tokens = 0;
  int batch = 0;
  RopeView rope;
};

/// One or two matrices of such rows.
struct WholeRowsTask {
  std::array<WholeRows, 2> part;
  float epsilon = 0.0f;
};

/// x <- rotate(x * inverse * weight), norms over the full width: a block per row, a unit of it per
/// thread. If `kAlike`, both parts lie in the same way and share their rotation, and a block takes
/// a row of each; else the tokens of the second part follow those of the first. Grid: tokens,
/// batch.
template <int kHeadWidth, int kThreads, bool kRotates, bool kAlike>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    NormRopeWholeRows(const __grid_constant__ WholeRowsTask task) {
  constexpr int kCount = kPacketSize<BF16>;
  constexpr int kUnitsPerHead = kHeadWidth / (2 * kCount);
  constexpr int kHalf = kHeadWidth / 2;
  constexpr int kWarps = kThreads / 32;
  constexpr int kParts = kAlike ? 2 : 1;
  __shared__ float partial[kParts][kWarps];
  const int first_tokens = task.part[0].tokens;
  const bool behind = !kAlike && static_cast<int>(blockIdx.x) >= first_tokens;
  const WholeRows rows = behind ? task.part[1] : task.part[0];
  if (static_cast<int>(blockIdx.y) >= rows.batch) return;
  const int token = static_cast<int>(blockIdx.x) - (behind ? first_tokens : 0);
  const int head = threadIdx.x / kUnitsPerHead;
  const int in_head = threadIdx.x % kUnitsPerHead * kCount;
  const int offset = head * kHeadWidth + in_head;
  const int64_t at =
      (static_cast<int64_t>(blockIdx.y) * rows.tokens + token) * rows.stride + offset;
  BF16* const x[2] = {rows.x + at, task.part[1].x + at};
  const BF16* const weight[2] = {rows.weight + offset, task.part[1].weight + offset};
  Pack<BF16> low[kParts];
  Pack<BF16> high[kParts];
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    low[p] = LoadPack(x[p]);
    high[p] = LoadPack(x[p] + kHalf);
  }
  Pack<BF16> cos;
  Pack<BF16> sin;
  if constexpr (kRotates) {
    const int64_t table = blockIdx.y * rows.rope.batch_stride + head * rows.rope.head_stride +
                          token * rows.rope.token_stride + in_head;
    cos = LoadPack(static_cast<const BF16*>(rows.rope.cos) + table);
    sin = LoadPack(static_cast<const BF16*>(rows.rope.sin) + table);
  }
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const float sum = SumLanes(SumOfSquares(low[p]) + SumOfSquares(high[p]));
    if (threadIdx.x % 32 == 0) partial[p][threadIdx.x / 32] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) total += partial[p][i];
    // Its error, two units of the last place of f32, is far below bf16's rounding.
    const float inverse = rsqrtf(total * (1.0f / (kThreads * 2 * kCount)) + task.epsilon);
    float a[kCount];
    float b[kCount];
    ScalePack(low[p], inverse, weight[p], 0.0f, a);
    ScalePack(high[p], inverse, weight[p] + kHalf, 0.0f, b);
    if constexpr (kRotates) {
      float c[kCount];
      float s[kCount];
      Unpack(cos, c);
      Unpack(sin, s);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float turned = a[i] * c[i] - b[i] * s[i];
        b[i] = b[i] * c[i] + a[i] * s[i];
        a[i] = turned;
      }
    }
    StorePack(x[p], MakePack(a));
    StorePack(x[p] + kHalf, MakePack(b));
  }
}

/// The head widths of the transformer's two streams, with 32 heads each.
constexpr int kWholeRowHeads = 32;
constexpr int kVideoHeadWidth = 128;
constexpr int kAudioHeadWidth = 64;
/// Tokens and batch rows of one launch: what a grid has in its first two dimensions.
constexpr int64_t kMostGridTokens = (int64_t{1} << 31) - 1;
constexpr int64_t kMostGridRows = 65535;

WholeRows RowsOf(const NormRopeTask& task) {
  WholeRows rows;
  rows.x = static_cast<BF16*>(task.y);
  rows.weight = static_cast<const BF16*>(task.weight);
  rows.stride = task.x_stride;
  rows.tokens = static_cast<int>(task.tokens);
  rows.batch = static_cast<int>(task.batch);
  rows.rope = task.rope;
  return rows;
}

/// Whether a block can take a row of both.
bool LieAlike(const WholeRows& a, const WholeRows& b) {
  return a.batch == b.batch && a.tokens == b.tokens && a.stride == b.stride &&
         a.rope.cos == b.rope.cos && a.rope.sin == b.rope.sin &&
         a.rope.batch_stride == b.rope.batch_stride && a.rope.head_stride == b.rope.head_stride &&
         a.rope.token_stride == b.rope.token_stride;
}

/// `like` stands for all parts in what they share.
cudaError_t LaunchWholeRows(const NormRopeTask& like, const WholeRowsTask& rows,
                            cudaStream_t stream) {
  const WholeRows& first = rows.part[0];
  const WholeRows& second = rows.part[1];
  const bool rotates = like.rope.kind != Kind::kNone;
  const bool alike = LieAlike(first, second);
  const dim3 grid(static_cast<unsigned>(first.tokens + (alike ? 0 : second.tokens)),
                  static_cast<unsigned>(std::max(first.batch, second.batch)));
  const auto launch = [&](auto head_width, auto rotating, auto joined) {
    constexpr int kHeadWidth = decltype(head_width)::value;
    constexpr int kThreads = kWholeRowHeads * kHeadWidth / (2 * kPacketSize<BF16>);
    NormRopeWholeRows<kHeadWidth, kThreads, decltype(rotating)::value, decltype(joined)::value>
        <<<grid, kThreads, 0, stream>>>(rows);
  };
  const auto launch_width = [&](auto head_width) {
    if (rotates && alike) return launch(head_width, std::true_type(), std::true_type());
    if (rotates) return launch(head_width, std::true_type(), std::false_type());
    if (alike) return launch(head_width, std::false_type(), std::true_type());
    launch(head_width, std::false_type(), std::false_type());
  };
  if (like.head_width == kVideoHeadWidth) {
    launch_width(std::integral_constant<int, kVideoHeadWidth>());
  } else {
    launch_width(std::integral_constant<int, kAudioHeadWidth>());
  }
  return cudaGetLastError();
}

}  // namespace

bool IsWholeRow(const NormRopeTask& task) {
  constexpr int kCount = kPacketSize<BF16>;
  return task.bf16 && task.x == task.y && task.x_stride == task.y_stride &&
         task.norm == Norm::kFullWidth && task.weight != nullptr && task.base == 0.0f &&
         task.rope.kind != Kind::kInterleaved && task.heads == kWholeRowHeads &&
         (task.head_width == kVideoHeadWidth || task.head_width == kAudioHeadWidth) &&
         task.batch <= kMostGridRows && task.tokens <= kMostGridTokens &&
         task.x_stride % kCount == 0 && IsAligned16(task.x) && IsAligned16(task.weight) &&
         IsPacked(task.rope, kCount);
}

bool CanShareLaunch(const NormRopeTask& a, const NormRopeTask& b) {
  return a.batch * a.tokens > 0 && b.batch * b.tokens > 0 && a.head_width == b.head_width &&
         a.epsilon == b.epsilon && (a.rope.kind == Kind::kNone) == (b.rope.kind == Kind::kNone) &&
         a.tokens + b.tokens <= kMostGridTokens;
}

cudaError_t LaunchWholeRow(const NormRopeTask& task, cudaStream_t stream) {
  WholeRowsTask rows;
  rows.part[0] = RowsOf(task);
  rows.epsilon = task.epsilon;
  return LaunchWholeRows(task, rows, stream);
}

cudaError_t LaunchWholeRowPair(const NormRopeTask& first, const NormRopeTask& second,
                               cudaStream_t stream) {
  WholeRowsTask rows;
  rows.part = {RowsOf(first), RowsOf(second)};
  rows.epsilon = first.epsilon;
  return LaunchWholeRows(first, rows, stream);
}

}  // namespace ltx::cuda
