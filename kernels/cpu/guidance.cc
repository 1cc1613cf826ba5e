#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// Elements whose sum is formed on its own, then added to the others in order: what is summed in
/// which order depends on the size alone.
constexpr int64_t kSumBlock = 4096;

/// Sum and sum of squares in f64, where squares of bf16 and f32 values lose nothing that matters.
struct Moments {
  double sum = 0.0;
  double squares = 0.0;

  void Add(Vec values) {
    alignas(32) float lanes[kLanes];
    _mm256_store_ps(lanes, values);
    for (const float value : lanes) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
  }
  void Add(const Moments& other) {
    sum += other.sum;
    squares += other.squares;
  }
  /// Unbiased.
  double StandardDeviation(int64_t count) const {
    const double mean = sum / static_cast<double>(count);
    const double variance = (squares - sum * mean) / static_cast<double>(count - 1);
    return std::sqrt(std::max(variance, 0.0));
  }
};

/// The passes of one step as pointers; a pass that was not run is null.
template <typename T>
class GuidedElements {
 public:
  GuidedElements(const Tensor& cond, const Tensor& uncond, const Tensor& perturbed,
                 const Tensor& isolated, const GuidanceScales& scales)
      : cond_(cond.data<T>()),
        uncond_(uncond.data<T>()),
        perturbed_(perturbed.data<T>()),
        isolated_(isolated.data<T>()),
        cfg_(Broadcast(scales.cfg - 1.0f)),
        stg_(Broadcast(scales.stg)),
        modality_(Broadcast(scales.modality - 1.0f)) {}

  template <typename Lanes>
  Vec Cond(int64_t at, Lanes lanes) const {
    return lanes.Load(cond_ + at);
  }
  template <typename Lanes>
  Vec Guided(int64_t at, Lanes lanes) const {
    const Vec cond = lanes.Load(cond_ + at);
    Vec sum = cond;
    if (uncond_ != nullptr) sum = sum + cfg_ * (cond - lanes.Load(uncond_ + at));
    if (perturbed_ != nullptr) sum = sum + stg_ * (cond - lanes.Load(perturbed_ + at));
    if (isolated_ != nullptr) sum = sum + modality_ * (cond - lanes.Load(isolated_ + at));
    return sum;
  }

 private:
  const T* const cond_;
  const T* const uncond_;
  const T* const perturbed_;
  const T* const isolated_;
  const Vec cfg_, stg_, modality_;
};

/// body(block, begin, end) for every block of [0, count).
template <typename Body>
void ForEachBlock(int threads, int64_t count, const Body& body) {
  ParallelFor(threads, (count + kSumBlock - 1) / kSumBlock, RowGrain(kCheapGrain, kSumBlock),
              [&](int64_t first, int64_t last) {
                for (int64_t block = first; block < last; ++block) {
                  body(block, block * kSumBlock, std::min((block + 1) * kSumBlock, count));
                }
              });
}

int64_t BlocksOf(int64_t count) { return (count + kSumBlock - 1) / kSumBlock; }

}  // namespace

absl::StatusOr<Tensor> CpuDevice::Guide(const Tensor& cond, const Tensor& uncond,
                                        const Tensor& perturbed, const Tensor& isolated,
                                        const GuidanceScales& scales) {
  LTX_RETURN_IF_ERROR(CheckGuide(cond, uncond, perturbed, isolated));
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(cond.shape(), cond.dtype(), MemoryOwner::kActivations));
  const int64_t rows = cond.dim(0);
  const int64_t count = rows == 0 ? 0 : cond.num_elements() / rows;
  if (count == 0) return y;
  const bool rescales = scales.rescale != 0.0f;
  Tensor scratch;
  if (rescales) {
    LTX_ASSIGN_OR_RETURN(scratch, Workspace(BlocksOf(count) * 2 * sizeof(Moments)));
  }
  DispatchFloat(cond.dtype(), [&](auto element) {
    using T = decltype(element);
    const GuidedElements<T> elements(cond, uncond, perturbed, isolated, scales);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t start = row * count;
      float factor = 1.0f;
      if (rescales) {
        Moments* const moments = scratch.data<Moments>();
        ForEachBlock(threads_, count, [&](int64_t block, int64_t begin, int64_t end) {
          Moments of_cond, of_guided;
          ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
            // Lanes beyond the end load zeros, which add nothing.
            const int64_t at = start + begin + i;
            of_cond.Add(elements.Cond(at, lanes));
            of_guided.Add(elements.Guided(at, lanes));
          });
          moments[2 * block] = of_cond;
          moments[2 * block + 1] = of_guided;
        });
        Moments of_cond, of_guided;
        for (int64_t block = 0; block < BlocksOf(count); ++block) {
          of_cond.Add(moments[2 * block]);
          of_guided.Add(moments[2 * block + 1]);
        }
        const float ratio = static_cast<float>(of_cond.StandardDeviation(count)) /
                            static_cast<float>(of_guided.StandardDeviation(count));
        factor = scales.rescale * ratio + (1.0f - scales.rescale);
      }
      const Vec scale = Broadcast(factor);
      ForEachBlock(threads_, count, [&](int64_t, int64_t begin, int64_t end) {
        ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
          const int64_t at = start + begin + i;
          const Vec guided = elements.Guided(at, lanes);
          lanes.Store(y.data<T>() + at, rescales ? guided * scale : guided);
        });
      });
    }
  });
  return y;
}

absl::StatusOr<std::vector<double>> CpuDevice::BatchDot(const Tensor& a, const Tensor& b) {
  LTX_RETURN_IF_ERROR(CheckFloat("BatchDot", a, 1));
  LTX_RETURN_IF_ERROR(CheckSame("BatchDot", a, b));
  const int64_t rows = a.dim(0);
  std::vector<double> dots(rows, 0.0);
  const int64_t count = rows == 0 ? 0 : a.num_elements() / rows;
  if (count == 0) return dots;
  LTX_ASSIGN_OR_RETURN(const Tensor scratch, Workspace(BlocksOf(count) * sizeof(double)));
  double* const sums = scratch.data<double>();
  DispatchFloat(a.dtype(), [&](auto element) {
    using T = decltype(element);
    for (int64_t row = 0; row < rows; ++row) {
      ForEachBlock(threads_, count, [&](int64_t block, int64_t begin, int64_t end) {
        double sum = 0.0;
        for (int64_t i = row * count + begin; i < row * count + end; ++i) {
          sum += static_cast<double>(static_cast<float>(a.data<T>()[i])) *
                 static_cast<float>(b.data<T>()[i]);
        }
        sums[block] = sum;
      });
      for (int64_t block = 0; block < BlocksOf(count); ++block) dots[row] += sums[block];
    }
  });
  return dots;
}

}  // namespace ltx::cpu
