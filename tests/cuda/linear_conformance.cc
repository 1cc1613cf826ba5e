#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16};

using Linears = ConformanceTest;

absl::StatusOr<Tensor> Apply(Device& device, absl::Span<const Tensor> t, Activation activation) {
  LTX_ASSIGN_OR_RETURN(const LinearWeight weight,
                       device.PrepareLinear(t[1], t[2], MemoryOwner::kWeightsDit));
  LinearOptions options;
  options.activation = activation;
  return device.Linear(t[0], weight, options);
}

TEST_F(Linears, ShapesAndActivations) {
  for (const DType dtype : kFloats) {
    for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                           {1, 64, 32},
                                                                           {5, 33, 17},
                                                                           {7, 1, 3},
                                                                           {3, 5, 1},
                                                                           {17, 128, 96},
                                                                           {64, 127, 65},
                                                                           {256, 512, 384},
                                                                           {1, 4096, 640},
                                                                           {1000, 256, 1024},
                                                                           {0, 8, 4},
                                                                           {4, 0, 6},
                                                                           {4, 8, 0}}) {
      const std::vector<Operand> operands = {
          Normal({rows, in}, dtype),
          Normal({out, in}, dtype, 1.0f / std::sqrt(static_cast<float>(in + 1))),
          Normal({out}, dtype, 0.2f)};
      const std::vector<Operand> no_bias = {operands[0], operands[1], {}};
      for (const Activation activation :
           {Activation::kNone, Activation::kSilu, Activation::kGeluTanh, Activation::kTanh,
            Activation::kSigmoid}) {
        const std::string at = absl::StrCat(rows, " ", in, " ", out, " act ",
                                            static_cast<int>(activation), " ", DTypeName(dtype));
        const auto op = [&](Device& d, Operands t) { return Apply(d, t, activation); };
        Check("Linear bias " + at, operands, CloseSum(dtype), op);
        Check("Linear plain " + at, no_bias, CloseSum(dtype), op);
      }
    }
  }
}

TEST_F(Linears, BatchesAndViews) {
  for (const DType dtype : kFloats) {
    Check(absl::StrCat("Linear batches ", DTypeName(dtype)),
          {Normal({2, 3, 5, 48}, dtype), Normal({24, 48}, dtype), Normal({24}, dtype)},
          CloseSum(dtype), [](Device& d, Operands t) { return Apply(d, t, Activation::kNone); });
    // The second row starts at an odd multiple of the element's size.
    Check(absl::StrCat("Linear view ", DTypeName(dtype)),
          {Normal({9, 33}, dtype), Normal({20, 33}, dtype), Normal({20}, dtype)}, CloseSum(dtype),
          [](Device& d, Operands t) -> absl::StatusOr<Tensor> {
            LTX_ASSIGN_OR_RETURN(const Tensor rows, t[0].Rows(1, 8));
            return Apply(d, {rows, t[1], t[2]}, Activation::kGeluTanh);
          });
  }
}

TEST_F(Linears, KeepTheirOperands) {
  ASSERT_TRUE(gpu().keeps_linear_operands());
  const auto at_odd_address = [](Device& d, Operands t) -> absl::StatusOr<Tensor> {
    // Rows of 66 bytes: the second begins where no kernel would like it.
    LTX_ASSIGN_OR_RETURN(const Tensor weight, t[1].Rows(1, 21));
    LTX_ASSIGN_OR_RETURN(const Tensor bias, t[2].Rows(1, 21));
    return Apply(d, {t[0], weight, bias}, Activation::kNone);
  };
  Check("Linear of odd operands",
        {Normal({9, 33}, DType::kBF16), Normal({21, 33}, DType::kBF16), Normal({21}, DType::kBF16)},
        CloseSum(DType::kBF16), at_odd_address);
  const auto operands = Upload(gpu(), {Normal({64, 256}, DType::kBF16)});
  ASSERT_TRUE(operands.ok());
  const int64_t live = gpu().ledger().Read().total.live_bytes;
  const auto weight = gpu().PrepareLinear((*operands)[0], Tensor(), MemoryOwner::kWeightsDit);
  ASSERT_TRUE(weight.ok()) << weight.status();
  EXPECT_EQ(gpu().ledger().Read().total.live_bytes, live);
}

TEST_F(Linears, ProductsOfF32AreNotRoundedToTf32) {
  // 1 + 2^-12 has no TF32: rounded operands would give 1.
  const std::vector<float> ones(64 * 64, 1.0f / 64.0f);
  std::vector<float> fine(128 * 64, 1.0f + 0x1p-12f);
  Check("Linear tf32", {Values(fine, {128, 64}), Values(ones, {64, 64}), {}}, {1e-6, 0.0},
        [](Device& d, Operands t) { return Apply(d, t, Activation::kNone); });
}

TEST_F(Linears, TheSameBitsEveryTime) {
  // Large enough for the choice among algorithms.
  for (const DType dtype : kFloats) {
    const auto operands = Upload(
        gpu(), {Normal({1024, 2048}, dtype), Normal({2048, 2048}, dtype), Normal({2048}, dtype)});
    ASSERT_TRUE(operands.ok());
    std::vector<std::vector<uint8_t>> results;
    for (int fresh = 0; fresh < 2; ++fresh) {
      for (int run = 0; run < 2; ++run) {
        const auto y = Apply(gpu(), *operands, Activation::kGeluTanh);
        ASSERT_TRUE(y.ok()) << y.status();
        results.emplace_back(y->num_bytes());
        ASSERT_TRUE(gpu().Download(*y, absl::MakeSpan(results.back())).ok());
        const absl::Status improved = gpu().ImproveAll();
        ASSERT_TRUE(improved.ok()) << improved;
        const auto more = gpu().Improve();
        EXPECT_TRUE(more.ok() && !*more) << "nothing is left";
      }
      auto other = CudaDevice::Create({});
      ASSERT_TRUE(other.ok()) << other.status();
      const auto y = Apply(**other, *operands, Activation::kGeluTanh);
      ASSERT_TRUE(y.ok()) << y.status();
      results.emplace_back(y->num_bytes());
      ASSERT_TRUE((*other)->Download(*y, absl::MakeSpan(results.back())).ok());
    }
    for (const auto& result : results)
      EXPECT_EQ(result, results[0]) << "Linear " << DTypeName(dtype);
  }
}

TEST_F(Linears, RecordingsAreOutdatedByBetterAlgorithmsOnly) {
  auto device = CudaDevice::Create({});
  ASSERT_TRUE(device.ok()) << device.status();
  int outdated = 0;
  // Of several shapes the library's first proposal is not always the best.
  for (const int64_t rows : {1344, 4032, 6144}) {
    const auto operands =
        Upload(**device, {Normal({rows, 2048}, DType::kBF16), Normal({4096, 2048}, DType::kBF16),
                          Normal({4096}, DType::kBF16)});
    ASSERT_TRUE(operands.ok());
    const auto record = [&](Tensor* y) {
      return (*device)->Record([&]() -> absl::Status {
        LTX_ASSIGN_OR_RETURN(*y, Apply(**device, *operands, Activation::kGeluTanh));
        return absl::OkStatus();
      });
    };
    const auto replayed = [&](const Recording& recording, const Tensor& y) {
      std::vector<uint8_t> bytes(y.num_bytes());
      EXPECT_TRUE((*device)->Replay(recording).ok());
      EXPECT_TRUE((*device)->Download(y, absl::MakeSpan(bytes)).ok());
      return bytes;
    };
    // Never run before it is recorded.
    Tensor first_y;
    const auto first = record(&first_y);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_FALSE((*first)->outdated());
    const std::vector<uint8_t> want = replayed(**first, first_y);
    ASSERT_TRUE((*device)->ImproveAll().ok());
    outdated += (*first)->outdated() ? 1 : 0;
    Tensor second_y;
    const auto second = record(&second_y);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_FALSE((*second)->outdated());
    EXPECT_TRUE(replayed(**second, second_y) == want) << rows;
    EXPECT_TRUE(replayed(**first, first_y) == want) << rows;
  }
  std::printf("%d of 3 recordings outdated\n", outdated);
}

}  // namespace
}  // namespace ltx::cuda
