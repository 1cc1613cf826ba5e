#include <array>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/host_copy.h"
#include "kernels/op_scratch.h"
#include "kernels/shape_device.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

/// What the scratch of operations is said to be, held against the ledger.
class ScratchConformance : public ConformanceTest {
 protected:
  static Tensor Zeros(const Shape& shape, DType dtype) {
    return ZeroTensor(gpu(), shape, dtype).value();
  }
  /// Workspace that `run` takes at its peak.
  template <typename Function>
  static int64_t Measured(const Function& run) {
    gpu().ledger().ResetPeaks();
    const auto result = run();
    EXPECT_TRUE(result.ok()) << result.status();
    return gpu().ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWorkspace)].peak_bytes;
  }
};

constexpr DType kDTypes[] = {DType::kF32, DType::kBF16};

TEST_F(ScratchConformance, Linear) {
  for (const DType dtype : kDTypes) {
    for (const bool bias : {false, true}) {
      LinearSize size;
      size.in = 1024;
      size.out = 1536;
      size.dtype = dtype;
      size.bias = bias;
      const auto weight =
          gpu().PrepareLinear(Zeros({size.out, size.in}, dtype),
                              bias ? Zeros({size.out}, dtype) : Tensor(), MemoryOwner::kWeightsDit);
      ASSERT_TRUE(weight.ok()) << weight.status();
      for (const int64_t rows : {3, 600}) {
        for (const Activation activation :
             {Activation::kNone, Activation::kGeluTanh, Activation::kSilu}) {
          size.rows = rows;
          size.activation = activation;
          LinearOptions options;
          options.activation = activation;
          const Tensor x = Zeros({rows, size.in}, dtype);
          // The first time chooses an algorithm.
          for (int use = 1; use <= 2; ++use) {
            const int64_t projected = gpu().op_scratch().Linear(size).bytes();
            EXPECT_EQ(projected, Measured([&] { return gpu().Linear(x, *weight, options); }))
                << DTypeName(dtype) << " rows " << rows << " bias " << bias << " activation "
                << static_cast<int>(activation) << " use " << use;
          }
        }
      }
    }
  }
}

TEST_F(ScratchConformance, NormConv) {
  ShapeDevice shapes(&gpu());
  const auto peak_of = [](Device& device, NormConvOptions around, bool residual, bool in_place) {
    const auto zeros = [&device](const Shape& shape) {
      return device.Allocate(shape, DType::kBF16, MemoryOwner::kActivations).value();
    };
    const ConvWeight weight =
        device.PrepareConv(zeros({512, 128, 3, 3, 3}), zeros({512}), MemoryOwner::kWeightsVideoVae)
            .value();
    ConvOptions options;
    for (int i = 0; i < 3; ++i) options.axes[i].pad_before = options.axes[i].pad_after = 1;
    options.axes[0].pad_mode = PadMode::kReplicate;
    Tensor x = zeros({1, 9, 128, 192, 128});
    if (residual) options.residual = zeros({1, 9, 128, 192, 512});
    if (in_place) around.into = options.residual;
    device.ledger().ResetPeaks();
    const int64_t before = device.ledger().Read().total.live_bytes;
    const auto y = device.NormConv(std::move(x), weight, options, around);
    EXPECT_TRUE(y.ok()) << y.status();
    return device.ledger().Read().total.peak_bytes - before;
  };
  for (const bool residual : {false, true}) {
    for (const bool in_place : {false, true}) {
      for (const bool shuffled : {false, true}) {
        if (in_place && (shuffled || !residual)) continue;
        NormConvOptions around;
        around.norm = NormConvOptions::Norm{1e-8f, Activation::kSilu};
        if (shuffled) {
          around.depth_to_space = {2, 2, 2};
          around.drop_first_frame = true;
        }
        EXPECT_EQ(peak_of(shapes, around, residual, in_place),
                  peak_of(gpu(), around, residual, in_place))
            << residual << in_place << shuffled;
      }
    }
  }
}

TEST_F(ScratchConformance, Conv) {
  for (const DType dtype : kDTypes) {
    const auto weight =
        gpu().PrepareConv(Zeros({64, 32, 3, 3, 3}, dtype), Tensor(), MemoryOwner::kWeightsVideoVae);
    ASSERT_TRUE(weight.ok()) << weight.status();
    for (const PadMode mode : {PadMode::kZeros, PadMode::kReflect}) {
      ConvSize size;
      size.in_channels = 32;
      size.out_channels = 64;
      size.dtype = dtype;
      ConvOptions options;
      const std::array<int64_t, 3> extents = {4, 24, 40};
      for (int i = 0; i < 3; ++i) {
        options.axes[i].pad_before = options.axes[i].pad_after = 1;
        options.axes[i].pad_mode = i == 0 ? PadMode::kReplicate : mode;
        size.axes[i].input = size.axes[i].output = extents[i];
        size.axes[i].kernel = 3;
        size.axes[i].pad_before = 1;
        size.axes[i].pad_mode = options.axes[i].pad_mode;
      }
      const Tensor x = Zeros({1, 4, 24, 40, 32}, dtype);
      EXPECT_EQ(gpu().op_scratch().Conv(size).bytes(),
                Measured([&] { return gpu().Conv(x, *weight, options); }))
          << DTypeName(dtype) << " padding " << static_cast<int>(mode);
    }
  }
}

TEST_F(ScratchConformance, AttentionByProducts) {
  for (const DType dtype : kDTypes) {
    for (const int64_t kv_heads : {4, 2}) {
      for (const bool masked : {false, true}) {
        AttentionSize size;
        size.batch = 2;
        size.heads = 4;
        size.kv_heads = kv_heads;
        size.queries = 700;
        size.keys = 900;
        size.head_dim = 32;  // Not one that cuDNN is asked for.
        size.value_dim = 32;
        size.dtype = dtype;
        size.key_mask = masked;
        const Tensor q = Zeros({2, 700, 4 * 32}, dtype);
        const Tensor k = Zeros({2, 900, kv_heads * 32}, dtype);
        AttentionOptions options;
        options.heads = 4;
        options.kv_heads = kv_heads;
        if (masked) {
          options.key_mask =
              TensorFromBytes(gpu(), std::vector<uint8_t>(size_t{2} * 900, 1), {2, 900}).value();
        }
        EXPECT_EQ(gpu().op_scratch().Attention(size).bytes(),
                  Measured([&] { return gpu().Attention(q, k, k, options); }))
            << DTypeName(dtype) << " kv heads " << kv_heads << " masked " << masked;
      }
    }
  }
}

TEST_F(ScratchConformance, AttentionByProductsOverColumnsOfAFusedProduct) {
  for (const DType dtype : kDTypes) {
    // Queries, keys, values and a gate for each head: rows that end off every boundary.
    for (const int64_t gates : {0, 3, 4}) {
      for (const int64_t tokens : {12, 48, 112, 700}) {
        const int64_t width = 4 * 32;
        const Tensor fused = Zeros({1, tokens, 3 * width + gates}, dtype);
        AttentionSize size;
        size.heads = size.kv_heads = 4;
        size.queries = size.keys = tokens;
        size.head_dim = size.value_dim = 32;
        size.dtype = dtype;
        size.q = {0, fused.dim(2)};
        size.k = {width, fused.dim(2)};
        size.v = {2 * width, fused.dim(2)};
        AttentionOptions options;
        options.heads = options.kv_heads = 4;
        EXPECT_EQ(gpu().op_scratch().Attention(size).bytes(), Measured([&] {
                    return gpu().Attention({fused, 0, width}, {fused, width, width},
                                           {fused, 2 * width, width}, options);
                  }))
            << DTypeName(dtype) << " tokens " << tokens << " gates " << gates;
      }
    }
  }
}

TEST_F(ScratchConformance, AttentionByCudnn) {
  for (const int64_t width : {64, 128, 256}) {
    for (const bool causal : {false, true}) {
      AttentionSize size;
      size.heads = size.kv_heads = 8;
      size.queries = size.keys = 1024;
      size.head_dim = size.value_dim = width;
      size.causal = causal;
      size.dtype = DType::kBF16;
      const Tensor q = Zeros({1, 1024, 8 * width}, DType::kBF16);
      AttentionOptions options;
      options.heads = options.kv_heads = 8;
      options.causal = causal;
      const int64_t measured = Measured([&] { return gpu().Attention(q, q, q, options); });
      std::printf("cuDNN workspace of attention, head %lld%s: %lld bytes\n",
                  static_cast<long long>(width), causal ? ", causal" : "",
                  static_cast<long long>(measured));
      EXPECT_GE(gpu().op_scratch().Attention(size).bytes(), measured);
    }
  }
}

TEST_F(ScratchConformance, GroupNorm) {
  for (const DType dtype : kDTypes) {
    GroupNormSize size;
    size.batch = 2;
    size.positions = 5000;
    size.channels = 64;
    size.groups = 32;
    size.dtype = dtype;
    const Tensor x = Zeros({2, 5000, 64}, dtype);
    const Tensor weight = Zeros({64}, dtype);
    GroupNormOptions options;
    options.groups = 32;
    EXPECT_EQ(gpu().op_scratch().GroupNorm(size).bytes(),
              Measured([&] { return gpu().GroupNorm(x, weight, weight, options); }))
        << DTypeName(dtype);
  }
}

}  // namespace
}  // namespace ltx::cuda
