#ifndef LTX_TESTS_CUDA_CONFORMANCE_H_
#define LTX_TESTS_CUDA_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/device.h"

namespace ltx::cuda {

/// The operations of the CUDA device held against those of the CPU device, on the same operands.

/// An operand on the host. Undefined (default constructed): one that is not given.
struct Operand {
  bool defined = false;
  Shape shape;
  DType dtype = DType::kF32;
  std::vector<uint8_t> bytes;
};

/// How far a result may be from the CPU's: |got - want| <= relative * |want| + absolute * rms(want)
/// for each element. All zero: equal to the bit.
struct Bound {
  double relative = 0.0;
  double absolute = 0.0;
};
inline constexpr Bound kExact{};
/// Some units in the last place, for functions that the two devices compute by other means.
Bound Close(DType dtype);
/// For sums: their order differs, so small results of large terms may be off by more.
Bound CloseSum(DType dtype);

/// Two devices for all tests of the program.
class ConformanceTest : public ::testing::Test {
 public:
  using Operands = absl::Span<const Tensor>;

 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  /// Both ledgers hold what they held before the test.
  void TearDown() override;

  static Device& cpu() { return *cpu_; }
  static CudaDevice& gpu() { return *gpu_; }

  /// Values of a normal distribution times `spread`, f32 or bf16.
  Operand Normal(const Shape& shape, DType dtype, float spread = 1.0f);
  /// Uniform in [low, high).
  Operand Uniform(const Shape& shape, DType dtype, float low, float high);
  Operand Values(const std::vector<float>& values, const Shape& shape, DType dtype = DType::kF32);
  /// Random bytes of a type that is only moved.
  Operand Bytes(const Shape& shape, DType dtype);
  Operand Ints(const std::vector<int32_t>& values);
  Operand Mask(const Shape& shape, double visible);

  /// Runs `op`, a callable (Device&, absl::Span<const Tensor>) that yields StatusOr<Tensor> or
  /// StatusOr<std::vector<Tensor>>, on both devices and compares what comes out; `what` leads every
  /// message.
  template <typename Op>
  void Check(const std::string& what, const std::vector<Operand>& operands, const Bound& bound,
             const Op& op) {
    CheckAll(what, operands, bound,
             [&op](Device& device, Operands tensors) -> absl::StatusOr<std::vector<Tensor>> {
               auto result = op(device, tensors);
               if (!result.ok()) return result.status();
               if constexpr (std::is_same_v<std::decay_t<decltype(*result)>, Tensor>) {
                 return std::vector<Tensor>{*std::move(result)};
               } else {
                 return *std::move(result);
               }
             });
  }

  static absl::StatusOr<std::vector<Tensor>> Upload(Device& device,
                                                    const std::vector<Operand>& operands);

 private:
  using Runner = std::function<absl::StatusOr<std::vector<Tensor>>(Device&, Operands)>;
  void CheckAll(const std::string& what, const std::vector<Operand>& operands, const Bound& bound,
                const Runner& op);
  void Compare(const std::string& what, const Tensor& want, const Tensor& got, const Bound& bound);

  // Live for the whole program: opening a GPU takes a second.
  static Device* cpu_;
  static CudaDevice* gpu_;
  std::mt19937 generator_{20240229};
};

/// One test for each case, which has a `name`, and element type: so a slow tool can be given some
/// of them.
template <typename Case>
class ConformanceCases : public ConformanceTest,
                         public ::testing::WithParamInterface<std::tuple<Case, DType>> {
 public:
  static std::string Name(const ::testing::TestParamInfo<std::tuple<Case, DType>>& info) {
    return absl::StrCat(std::get<0>(info.param).name, "_", DTypeName(std::get<1>(info.param)));
  }

 protected:
  const Case& the_case() const { return std::get<0>(this->GetParam()); }
  DType dtype() const { return std::get<1>(this->GetParam()); }
};

/// "[2, 3] BF16".
std::string Describe(const Shape& shape, DType dtype);

}  // namespace ltx::cuda

#endif  // LTX_TESTS_CUDA_CONFORMANCE_H_
