#include "kernels/op_scratch.h"

#include <array>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/conv_geometry.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::cpu {
namespace {

class CpuOpScratchTest : public ::testing::TestWithParam<DType> {
 protected:
  CpuOpScratchTest() {
    CpuDeviceOptions options;
    options.threads = 3;
    device_ = CpuDevice::Create(options).value();
  }
  Tensor Zeros(const Shape& shape, DType dtype) {
    return ZeroTensor(*device_, shape, dtype).value();
  }
  /// Workspace that `run` takes at its peak.
  template <typename Function>
  int64_t Measured(const Function& run) {
    device_->ledger().ResetPeaks();
    EXPECT_TRUE(run().ok());
    return device_->ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWorkspace)].peak_bytes;
  }
  const OpScratch& scratch() { return device_->op_scratch(); }

  std::unique_ptr<CpuDevice> device_;
};

TEST_P(CpuOpScratchTest, Linear) {
  LinearSize size;
  size.in = 48;
  size.out = 300;
  size.dtype = GetParam();
  const LinearWeight weight = device_
                                  ->PrepareLinear(Zeros({size.out, size.in}, size.dtype), Tensor(),
                                                  MemoryOwner::kWeightsDit)
                                  .value();
  for (const int64_t rows : {1, 70, 9000}) {
    for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
      size.rows = rows;
      size.activation = activation;
      const Tensor x = Zeros({rows, size.in}, size.dtype);
      LinearOptions options;
      options.activation = activation;
      const int64_t measured = Measured([&] { return device_->Linear(x, weight, options); });
      // What oneDNN asks for besides.
      constexpr int64_t kLibrary = 64 << 10;
      EXPECT_LE(scratch().Linear(size).bytes(), measured)
          << rows << " " << static_cast<int>(activation);
      EXPECT_GE(scratch().Linear(size).bytes() + kLibrary, measured)
          << rows << " " << static_cast<int>(activation);
    }
  }
}

TEST_P(CpuOpScratchTest, Conv) {
  ConvSize size;
  size.in_channels = 5;
  size.out_channels = 70;
  size.dtype = GetParam();
  const ConvWeight weight =
      device_->PrepareConv(Zeros({70, 5, 3, 3, 3}, size.dtype), Tensor(), MemoryOwner::kWeightsDit)
          .value();
  ConvOptions options;
  for (AxisGeometry& axis : options.axes) axis.pad_before = axis.pad_after = 1;
  for (const int64_t width : {1, 9, 33, 400}) {
    size.batch = 2;
    const std::array<int64_t, 3> extents = {3, 4, width};
    for (int i = 0; i < 3; ++i) {
      size.axes[i] = MakeConvAxis(i, extents[i], /*kernel=*/3, options.axes[i]).value();
    }
    const Tensor x = Zeros({2, 3, 4, width, 5}, size.dtype);
    EXPECT_EQ(scratch().Conv(size).bytes(),
              Measured([&] { return device_->Conv(x, weight, options); }))
        << width;
  }
}

TEST_P(CpuOpScratchTest, ConvTransposed) {
  ConvSize size;
  size.in_channels = 12;
  size.out_channels = 6;
  size.phases = 4;
  size.axes[2] = MakeTransposedConv(50, /*kernel=*/8, /*stride=*/4, /*padding=*/2)->phase;
  size.dtype = GetParam();
  const ConvWeight weight = device_
                                ->PrepareConvTranspose1d(Zeros({12, 6, 8}, size.dtype), Tensor(),
                                                         MemoryOwner::kWeightsDit)
                                .value();
  const Tensor x = Zeros({1, 50, 12}, size.dtype);
  const int64_t measured =
      Measured([&] { return device_->ConvTranspose1d(x, weight, /*stride=*/4, /*padding=*/2); });
  EXPECT_NEAR(static_cast<double>(scratch().Conv(size).bytes()), static_cast<double>(measured),
              0.05 * static_cast<double>(measured));
}

TEST_P(CpuOpScratchTest, Attention) {
  for (const int64_t queries : {1, 40, 500}) {
    AttentionSize size;
    size.batch = 2;
    size.heads = 4;
    size.queries = queries;
    size.keys = 300;
    size.head_dim = 24;
    size.dtype = GetParam();
    const Tensor q = Zeros({2, queries, 96}, size.dtype);
    const Tensor k = Zeros({2, 300, 96}, size.dtype);
    AttentionOptions options;
    options.heads = 4;
    options.kv_heads = 4;
    EXPECT_EQ(scratch().Attention(size).bytes(),
              Measured([&] { return device_->Attention(q, k, k, options); }))
        << queries;
  }
}

TEST_P(CpuOpScratchTest, GroupNorm) {
  GroupNormSize size;
  size.batch = 2;
  size.positions = 200;
  size.channels = 64;
  size.groups = 32;
  size.dtype = GetParam();
  const Tensor x = Zeros({2, 200, 64}, size.dtype);
  const Tensor weight = Zeros({64}, size.dtype);
  EXPECT_EQ(scratch().GroupNorm(size).bytes(),
            Measured([&] { return device_->GroupNorm(x, weight, weight, GroupNormOptions()); }));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuOpScratchTest, ::testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace ltx::cpu
