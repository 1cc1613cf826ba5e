#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16};

using Convolutions = ConformanceTest;

/// Of a filter whose factors are rounded to bf16 after sums of two and three values: some two to
/// three times the error of rounded inputs, relative to the root mean square of the results.
Bound Filtered(DType dtype) {
  return dtype == DType::kBF16 ? Bound{0x1p-7, 2.5e-2} : CloseSum(dtype);
}

struct ConvCase {
  const char* name;
  Shape input;  ///< [B, spatial..., C]
  int64_t out;
  Shape kernel;
  std::array<AxisGeometry, 3> axes;
};

AxisGeometry Axis(int64_t stride, int64_t dilation, int64_t before, int64_t after,
                  PadMode mode = PadMode::kZeros) {
  AxisGeometry axis;
  axis.stride = stride;
  axis.dilation = dilation;
  axis.pad_before = before;
  axis.pad_after = after;
  axis.pad_mode = mode;
  return axis;
}

std::vector<ConvCase> Cases() {
  const AxisGeometry same = Axis(1, 1, 1, 1);
  const AxisGeometry causal = Axis(1, 1, 2, 0, PadMode::kReplicate);
  const AxisGeometry reflect = Axis(1, 1, 1, 1, PadMode::kReflect);
  return {
      {"causal3d", {1, 4, 9, 11, 32}, 48, {3, 3, 3}, {causal, same, same}},
      {"reflect3d", {2, 3, 6, 7, 24}, 17, {3, 3, 3}, {causal, reflect, reflect}},
      {"wide3d", {1, 5, 16, 16, 128}, 128, {3, 3, 3}, {causal, same, same}},
      {"stride3d",
       {1, 5, 8, 10, 16},
       40,
       {3, 3, 3},
       {Axis(2, 1, 2, 0, PadMode::kReplicate), Axis(2, 1, 1, 1), Axis(2, 1, 1, 1)}},
      // More tiles than a GPU has multiprocessors, the last channels of a tile missing.
      {"many_tiles", {1, 3, 40, 72, 64}, 200, {3, 3, 3}, {causal, same, same}},
      {"reflected_frames",
       {1, 4, 8, 24, 16},
       8,
       {3, 3, 3},
       {Axis(1, 1, 1, 1, PadMode::kReflect), same, same}},
      {"dilated2d", {1, 30, 30, 64}, 64, {3, 3}, {Axis(1, 2, 2, 2), Axis(1, 3, 3, 3), {}}},
      {"one3d", {1, 3, 5, 5, 64}, 96, {1, 1, 1}, {}},
      {"rgb_in", {1, 3, 12, 12, 3}, 32, {3, 3, 3}, {causal, same, same}},
      {"rgb_out", {1, 3, 12, 12, 64}, 3, {3, 3, 3}, {causal, same, same}},
      {"circular2d", {2, 9, 9, 20}, 12, {3, 3}, {Axis(1, 1, 1, 1, PadMode::kCircular), same, {}}},
      {"causal2d", {1, 17, 16, 64}, 64, {3, 3}, {Axis(1, 1, 2, 0), same, {}}},
      {"stride2d", {2, 12, 15, 32}, 64, {4, 4}, {Axis(2, 1, 1, 1), Axis(2, 1, 1, 1), {}}},
      {"dilated1d", {2, 100, 48}, 48, {7}, {Axis(1, 3, 9, 9), {}, {}}},
      {"stft1d", {1, 2000, 1}, 66, {512}, {Axis(80, 1, 216, 216), {}, {}}},
      {"wide1d", {1, 300, 512}, 256, {3}, {same, {}, {}}},
      {"single", {1, 1, 1}, 1, {1}, {}},
      {"empty_batch", {0, 5, 8}, 8, {3}, {same, {}, {}}},
      {"no_channels", {1, 5, 0}, 8, {3}, {same, {}, {}}},
  };
}

using ConvolutionShapes = ConformanceCases<ConvCase>;

TEST_P(ConvolutionShapes, AreTheCpus) {
  const ConvCase& c = the_case();
  std::vector<int64_t> weight = {c.out, c.input.dim(-1)};
  weight.insert(weight.end(), c.kernel.dims().begin(), c.kernel.dims().end());
  const std::vector<Operand> operands = {
      Normal(c.input, dtype()), Normal(Shape(weight), dtype(), 0.2f), Normal({c.out}, dtype())};
  for (const Activation activation : {Activation::kNone, Activation::kSilu}) {
    for (const bool bias : {true, false}) {
      const std::string at = absl::StrCat(c.name, bias ? " bias" : "", " act ",
                                          static_cast<int>(activation), " ", DTypeName(dtype()));
      const auto op = [&](Device& d, Operands t, bool residual) -> absl::StatusOr<Tensor> {
        LTX_ASSIGN_OR_RETURN(
            const ConvWeight prepared,
            d.PrepareConv(t[1], bias ? t[2] : Tensor(), MemoryOwner::kWeightsVideoVae));
        ConvOptions options;
        options.axes = c.axes;
        options.activation = activation;
        if (residual) {
          LTX_ASSIGN_OR_RETURN(options.residual, d.Conv(t[0], prepared, options));
        }
        return d.Conv(t[0], prepared, options);
      };
      Check("Conv " + at, operands, CloseSum(dtype()),
            [&](Device& d, Operands t) { return op(d, t, false); });
      // The residual comes from the operation itself, so its error counts twice.
      const Bound twice = {2 * CloseSum(dtype()).relative, 2 * CloseSum(dtype()).absolute};
      Check("Conv residual " + at, operands, twice,
            [&](Device& d, Operands t) { return op(d, t, true); });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvolutionShapes,
                         ::testing::Combine(::testing::ValuesIn(Cases()),
                                            ::testing::ValuesIn(kFloats)),
                         ConvolutionShapes::Name);

/// Convolutions that the GPU may do with fewer products (Winograd's filtering along time), and what
/// is done around them.
struct NormConvCase {
  const char* name;
  Shape input;  ///< [B, T, H, W, C]
  int64_t out;
  AxisGeometry time;
  std::array<int, 3> depth_to_space = {1, 1, 1};
  bool drop = false;
};

std::vector<NormConvCase> NormConvCases() {
  const AxisGeometry both = Axis(1, 1, 1, 1, PadMode::kReplicate);
  const AxisGeometry causal = Axis(1, 1, 2, 0, PadMode::kReplicate);
  return {
      // Odd and even frames, tiles that are cut off on either side, an odd number of them.
      {"even", {1, 4, 8, 16, 64}, 128, both},
      {"odd", {1, 5, 16, 24, 64}, 128, both},
      {"causal", {1, 3, 9, 21, 128}, 128, causal},
      {"two_frames", {1, 2, 14, 24, 64}, 256, both},
      {"one_frame", {1, 1, 14, 24, 64}, 128, both},
      {"zeros_in_time", {1, 4, 8, 8, 64}, 128, Axis(1, 1, 1, 1)},
      {"reflected_frames", {1, 4, 8, 8, 64}, 128, Axis(1, 1, 1, 1, PadMode::kReflect)},
      {"fewer_frames", {1, 6, 8, 8, 64}, 128, Axis(1, 1, 0, 0)},
      {"more_frames", {1, 3, 8, 8, 64}, 128, Axis(1, 1, 2, 1, PadMode::kReplicate)},
      {"batch", {2, 3, 8, 16, 64}, 128, both},
      {"odd_channels", {1, 3, 10, 10, 40}, 104, both},
      {"wide", {1, 3, 10, 17, 512}, 384, both},
      {"wider", {1, 2, 5, 8, 1024}, 128, both},
      // More tiles than a GPU has multiprocessors.
      {"many_tiles", {1, 7, 64, 112, 64}, 256, both},
      {"space", {1, 3, 9, 17, 64}, 512, both, {1, 2, 2}},
      {"time", {1, 4, 9, 17, 64}, 256, both, {2, 1, 1}, true},
      {"all", {1, 3, 9, 17, 64}, 1024, causal, {2, 2, 2}, true},
      {"all_kept", {1, 3, 9, 17, 64}, 1024, both, {2, 2, 2}, false},
      {"few_channels_left", {1, 3, 8, 8, 64}, 128, both, {1, 2, 2}},
      {"one_frame_all", {1, 1, 8, 8, 64}, 1024, both, {2, 2, 2}, true},
      {"batch_all", {2, 2, 8, 8, 64}, 1024, both, {2, 2, 2}, true},
      {"odd_factors", {1, 2, 8, 8, 64}, 192, both, {1, 1, 3}},
      {"rgb_out", {1, 3, 12, 12, 64}, 48, both},
  };
}

using NormConvolutions = ConformanceCases<NormConvCase>;

TEST_P(NormConvolutions, AreTheCpus) {
  const NormConvCase& c = the_case();
  const int64_t channels = c.input.dim(-1);
  const float spread = 1.0f / std::sqrt(27.0f * static_cast<float>(channels));
  Shape wide = c.input;
  wide.set_dim(-1, c.out);
  wide.set_dim(1, c.input.dim(1) + c.time.pad_before + c.time.pad_after - 2);
  const std::vector<Operand> operands = {Normal(c.input, dtype(), 3.0f),
                                         Normal({c.out, channels, 3, 3, 3}, dtype(), spread),
                                         Normal({c.out}, dtype()), Normal(wide, dtype())};
  for (const bool norm : {true, false}) {
    for (const bool residual : {true, false}) {
      const std::string at = absl::StrCat("NormConv ", c.name, norm ? " norm" : "",
                                          residual ? " residual " : " ", DTypeName(dtype()));
      const auto op = [&](Device& d, Operands t) -> absl::StatusOr<Tensor> {
        LTX_ASSIGN_OR_RETURN(
            const ConvWeight prepared,
            d.PrepareConv(t[1], norm ? t[2] : Tensor(), MemoryOwner::kWeightsVideoVae));
        ConvOptions options;
        options.axes = {c.time, Axis(1, 1, 1, 1), Axis(1, 1, 1, 1)};
        NormConvOptions around;
        if (norm) around.norm = NormConvOptions::Norm{1e-8f, Activation::kSilu};
        around.depth_to_space = c.depth_to_space;
        around.drop_first_frame = c.drop;
        if (!residual) return d.NormConv(t[0], prepared, options, around);
        options.residual = t[3];
        LTX_ASSIGN_OR_RETURN(const Tensor fresh, d.NormConv(t[0], prepared, options, around));
        // In place, or where it is told to if the residual has another shape: the same bits.
        LTX_ASSIGN_OR_RETURN(options.residual,
                             d.Allocate(t[3].shape(), t[3].dtype(), MemoryOwner::kActivations));
        LTX_RETURN_IF_ERROR(d.Copy(t[3], &options.residual));
        around.into = options.residual;
        if (fresh.shape() != t[3].shape()) {
          LTX_ASSIGN_OR_RETURN(around.into,
                               d.Allocate(fresh.shape(), fresh.dtype(), MemoryOwner::kActivations));
        }
        LTX_ASSIGN_OR_RETURN(const Tensor again, d.NormConv(t[0], prepared, options, around));
        LTX_ASSIGN_OR_RETURN(const std::vector<float> a, ToFloats(d, fresh));
        LTX_ASSIGN_OR_RETURN(const std::vector<float> b, ToFloats(d, again));
        EXPECT_EQ(a, b) << at;
        return again;
      };
      Check(at, operands, Filtered(dtype()), op);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NormConvolutions,
                         ::testing::Combine(::testing::ValuesIn(NormConvCases()),
                                            ::testing::ValuesIn(kFloats)),
                         NormConvolutions::Name);

/// A clip in parts that begin at even frames, each with the frames around it that the kernel reads:
/// what decoding in parts stands on.
TEST_F(Convolutions, PartsHaveTheBitsOfTheWhole) {
  constexpr int64_t kFrames = 13;
  const std::vector<int64_t> bounds = {0, 2, 8, 10, kFrames};
  Device& d = gpu();
  for (const DType dtype : kFloats) {
    for (const int64_t out : {int64_t{128}, int64_t{48}}) {
      const std::vector<Tensor> operands = Upload(d, {Normal({out, 64, 3, 3, 3}, dtype, 0.05f),
                                                      Normal({kFrames, 16, 24, 64}, dtype, 3.0f),
                                                      Normal({kFrames, 16, 24, out}, dtype)})
                                               .value();
      const Tensor& x = operands[1];
      const Tensor& residual = operands[2];
      const ConvWeight weight =
          d.PrepareConv(operands[0], Tensor(), MemoryOwner::kWeightsVideoVae).value();
      const Tensor whole = d.Allocate(residual.shape(), dtype, MemoryOwner::kActivations).value();
      const Tensor parts = d.Allocate(residual.shape(), dtype, MemoryOwner::kActivations).value();
      const auto clip = [](const Tensor& frames, int64_t begin, int64_t end) {
        const Tensor rows = frames.Rows(begin, end).value();
        return rows.Reshape({1, end - begin, rows.dim(1), rows.dim(2), rows.dim(3)}).value();
      };
      const auto convolve = [&](int64_t begin, int64_t end, const Tensor& y) {
        ConvOptions options;
        const int64_t before = begin > 0 ? 1 : 0;
        const int64_t after = end < kFrames ? 1 : 0;
        options.axes = {Axis(1, 1, 1 - before, 1 - after, PadMode::kReplicate), Axis(1, 1, 1, 1),
                        Axis(1, 1, 1, 1)};
        options.residual = clip(residual, begin, end);
        NormConvOptions around;
        around.norm = NormConvOptions::Norm{1e-8f, Activation::kSilu};
        around.into = clip(y, begin, end);
        const auto made = d.NormConv(clip(x, begin - before, end + after), weight, options, around);
        ASSERT_TRUE(made.ok()) << made.status();
        EXPECT_EQ(made->raw(), around.into.raw());
      };
      convolve(0, kFrames, whole);
      for (size_t i = 0; i + 1 < bounds.size(); ++i) convolve(bounds[i], bounds[i + 1], parts);
      EXPECT_EQ(ToFloats(d, parts).value(), ToFloats(d, whole).value())
          << DTypeName(dtype) << " to " << out;
    }
  }
}

TEST_F(Convolutions, Transposed) {
  struct Case {
    int64_t batch, length, in, out, kernel, stride, padding;
  };
  for (const DType dtype : kFloats) {
    for (const Case& c :
         {Case{1, 20, 32, 16, 16, 8, 4}, Case{2, 7, 24, 12, 11, 5, 3},
          Case{1, 100, 512, 256, 4, 2, 1}, Case{1, 1, 4, 4, 3, 2, 0}, Case{1, 9, 8, 8, 2, 3, 0},
          Case{1, 0, 8, 8, 4, 2, 1}, Case{1, 3, 8, 5, 4, 2, 5}}) {
      Check(absl::StrCat("ConvTranspose1d ", c.batch, " ", c.length, " ", c.in, "->", c.out, " k ",
                         c.kernel, " s ", c.stride, " p ", c.padding, " ", DTypeName(dtype)),
            {Normal({c.batch, c.length, c.in}, dtype), Normal({c.in, c.out, c.kernel}, dtype, 0.2f),
             Normal({c.out}, dtype)},
            CloseSum(dtype), [&](Device& d, Operands t) -> absl::StatusOr<Tensor> {
              LTX_ASSIGN_OR_RETURN(
                  const ConvWeight prepared,
                  d.PrepareConvTranspose1d(t[1], t[2], MemoryOwner::kWeightsAudioVae));
              return d.ConvTranspose1d(t[0], prepared, c.stride, c.padding);
            });
    }
  }
}

}  // namespace
}  // namespace ltx::cuda
