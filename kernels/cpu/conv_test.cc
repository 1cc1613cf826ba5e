#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace ltx::cpu {
namespace {

/// Reference: the element of [0, extent) seen at position p, or -1.
int64_t Seen(int64_t p, int64_t extent, PadMode mode) {
  if (p >= 0 && p < extent) return p;
  switch (mode) {
    case PadMode::kZeros:
      return -1;
    case PadMode::kReplicate:
      return p < 0 ? 0 : extent - 1;
    case PadMode::kReflect:
      return p < 0 ? -p : extent - 1 - (p - (extent - 1));
    case PadMode::kCircular:
      while (p < 0) p += extent;
      return p % extent;
  }
  return -1;
}

struct Case {
  std::vector<int64_t> extents;  // spatial
  int64_t in;
  int64_t out;
  std::vector<int64_t> kernel;
  std::vector<AxisGeometry> axes;
  int64_t batch = 1;
  bool bias = true;
  bool residual = false;
  Activation activation = Activation::kNone;
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

AxisGeometry Same(int64_t kernel, int64_t dilation = 1, PadMode mode = PadMode::kZeros) {
  const int64_t total = dilation * (kernel - 1);
  return Axis(1, dilation, total / 2, total - total / 2, mode);
}

class ConvTest : public CpuDeviceTest {
 protected:
  void Check(const Case& c, DType dtype) {
    const int n = static_cast<int>(c.extents.size());
    // Three axes throughout, the missing ones in front.
    std::array<int64_t, 3> in_extent{1, 1, 1};
    std::array<int64_t, 3> kernel{1, 1, 1};
    std::array<int64_t, 3> out_extent{1, 1, 1};
    std::array<AxisGeometry, 3> axes{};
    Shape x_shape = Dims(c.batch, c.extents, c.in);
    std::vector<int64_t> w_dims = {c.out, c.in};
    ConvOptions options;
    std::vector<int64_t> out_extents;
    for (int i = 0; i < n; ++i) {
      const int a = 3 - n + i;
      in_extent[a] = c.extents[i];
      kernel[a] = c.kernel[i];
      axes[a] = c.axes[i];
      options.axes[i] = c.axes[i];
      w_dims.push_back(c.kernel[i]);
      out_extent[a] = (in_extent[a] + axes[a].pad_before + axes[a].pad_after -
                       axes[a].dilation * (kernel[a] - 1) - 1) /
                          axes[a].stride +
                      1;
      out_extents.push_back(out_extent[a]);
    }
    const Tensor x = MakeRandom(x_shape, dtype);
    const Tensor w = MakeRandom(Shape(w_dims), dtype);
    const Tensor b = c.bias ? MakeRandom({c.out}, dtype) : Tensor();
    const Shape y_shape = Dims(c.batch, out_extents, c.out);
    if (c.residual) options.residual = MakeRandom(y_shape, dtype);
    options.activation = c.activation;
    auto weight = device_->PrepareConv(w, b, MemoryOwner::kWeightsVideoVae);
    ASSERT_TRUE(weight.ok()) << weight.status();
    auto y = device_->Conv(x, *weight, options);
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->shape(), y_shape);
    ASSERT_EQ(y->dtype(), dtype);

    const std::vector<float> xs = Values(x);
    const std::vector<float> ws = Values(w);
    const std::vector<float> bs = c.bias ? Values(b) : std::vector<float>(c.out, 0.0f);
    const std::vector<float> rs =
        c.residual ? Values(options.residual) : std::vector<float>(y_shape.num_elements(), 0.0f);
    const int64_t taps = kernel[0] * kernel[1] * kernel[2];
    std::vector<double> want(y_shape.num_elements());
    size_t at = 0;
    for (int64_t bi = 0; bi < c.batch; ++bi)
      for (int64_t o0 = 0; o0 < out_extent[0]; ++o0)
        for (int64_t o1 = 0; o1 < out_extent[1]; ++o1)
          for (int64_t o2 = 0; o2 < out_extent[2]; ++o2)
            for (int64_t oc = 0; oc < c.out; ++oc, ++at) {
              double sum = bs[oc];
              for (int64_t tap = 0; tap < taps; ++tap) {
                const int64_t k[3] = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1],
                                      tap % kernel[2]};
                const int64_t o[3] = {o0, o1, o2};
                int64_t line = bi;
                bool zero = false;
                for (int a = 0; a < 3; ++a) {
                  const int64_t p =
                      o[a] * axes[a].stride + k[a] * axes[a].dilation - axes[a].pad_before;
                  const int64_t s = Seen(p, in_extent[a], axes[a].pad_mode);
                  zero = zero || s < 0;
                  line = line * in_extent[a] + s;
                }
                if (zero) continue;
                for (int64_t ic = 0; ic < c.in; ++ic) {
                  sum +=
                      static_cast<double>(xs[line * c.in + ic]) * ws[(oc * c.in + ic) * taps + tap];
                }
              }
              sum += rs[at];
              want[at] = c.activation == Activation::kSilu ? sum / (1 + std::exp(-sum)) : sum;
            }
    // See linear_test.cc: K terms of magnitude one.
    const double sum_error = std::ldexp(2.0 * (c.in * taps + 1), -24) + 1e-7;
    const double half_ulp = dtype == DType::kBF16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -21);
    ExpectClose(Values(*y), want, half_ulp, 4 * sum_error);
  }

  void CheckBoth(const Case& c) {
    std::string text = absl::StrCat(c.in, "->", c.out, " batch ", c.batch, " axes");
    for (size_t i = 0; i < c.extents.size(); ++i) {
      absl::StrAppend(&text, " ", c.extents[i], "/k", c.kernel[i], "s", c.axes[i].stride, "d",
                      c.axes[i].dilation, "p", c.axes[i].pad_before, ",", c.axes[i].pad_after, "m",
                      static_cast<int>(c.axes[i].pad_mode));
    }
    SCOPED_TRACE(text);
    Check(c, DType::kF32);
    Check(c, DType::kBF16);
  }

  static Shape Dims(int64_t batch, const std::vector<int64_t>& spatial, int64_t channels) {
    std::vector<int64_t> dims = {batch};
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    dims.push_back(channels);
    return Shape(dims);
  }
};

TEST_F(ConvTest, ChannelCountsAndKernels1d) {
  for (const int64_t in : {1, 2, 3, 7, 8, 16, 24, 48, 131}) {
    for (const int64_t out : {1, 3, 16, 17, 48, 67}) {
      CheckBoth({{23}, in, out, {3}, {Same(3)}, 2});
    }
  }
  for (const int64_t kernel : {1, 2, 5, 7, 11}) {
    for (const int64_t dilation : {1, 3, 5}) {
      CheckBoth({{61}, 12, 24, {kernel}, {Same(kernel, dilation)}, 2});
    }
  }
}

TEST_F(ConvTest, EveryPaddingMode) {
  for (const PadMode mode :
       {PadMode::kZeros, PadMode::kReplicate, PadMode::kReflect, PadMode::kCircular}) {
    CheckBoth({{13}, 5, 9, {7}, {Same(7, 1, mode)}, 2});
    CheckBoth({{13}, 5, 9, {3}, {Axis(2, 3, 4, 5, mode)}, 2});
    CheckBoth({{4, 5, 6}, 3, 4, {3, 3, 3}, {Same(3, 1, mode), Same(3, 1, mode), Same(3, 1, mode)}});
    CheckBoth({{5, 6, 7},
               3,
               4,
               {3, 3, 3},
               {Axis(1, 1, 2, 0, PadMode::kReplicate), Same(3), Same(3, 1, mode)},
               2});
  }
  // Replication may exceed the axis.
  CheckBoth({{1}, 4, 4, {7}, {Same(7, 1, PadMode::kReplicate)}});
}

TEST_F(ConvTest, StridesAndAsymmetricPads) {
  CheckBoth({{9, 8}, 6, 10, {3, 3}, {Axis(2, 1, 2, 0), Axis(2, 1, 0, 1)}, 3});
  CheckBoth({{9, 8, 7}, 6, 10, {3, 2, 1}, {Axis(2, 1, 2, 0), Axis(2, 1, 0, 1), Axis(3, 1, 0, 0)}});
  CheckBoth({{7, 5}, 24, 20, {1, 1}, {Axis(1, 1, 0, 0), Axis(1, 1, 0, 0)}, 2});
}

TEST_F(ConvTest, LongLines) {
  // Long enough for the inner positions of a line to be read in place.
  CheckBoth({{3, 4, 37}, 5, 9, {3, 3, 3}, {Same(3), Same(3), Same(3)}, 2});
  CheckBoth({{3, 4, 61}, 5, 9, {3, 3, 3}, {Axis(2, 1, 2, 0), Same(3), Axis(2, 2, 3, 0)}, 2});
  CheckBoth({{6, 139}, 3, 20, {2, 5}, {Same(2), Axis(3, 1, 4, 9, PadMode::kReflect)}});
  CheckBoth({{130}, 257, 18, {3}, {Same(3)}});
}

TEST_F(ConvTest, LargeKernelOverOneChannel) {
  CheckBoth({{1600}, 1, 514, {512}, {Axis(80, 1, 432, 0)}, 2});
  CheckBoth({{700}, 1, 34, {512}, {Axis(80, 1, 256, 256, PadMode::kReflect)}});
}

TEST_F(ConvTest, ManyChannels) {
  // More columns and a longer sum than one block takes.
  CheckBoth({{3, 5, 4}, 67, 531, {3, 3, 3}, {Same(3), Same(3), Same(3)}});
  // More rows than one block takes.
  CheckBoth({{9, 11, 13}, 12, 12, {3, 3, 3}, {Same(3), Same(3), Same(3)}, 2});
}

TEST_F(ConvTest, ResidualAndActivation) {
  for (const bool bias : {false, true}) {
    CheckBoth({{6, 7}, 5, 11, {3, 3}, {Same(3), Same(3)}, 2, bias, true, Activation::kSilu});
    CheckBoth({{6, 7}, 5, 11, {3, 3}, {Same(3), Same(3)}, 2, bias, true});
    CheckBoth({{6, 7}, 5, 11, {3, 3}, {Same(3), Same(3)}, 2, bias, false, Activation::kSilu});
  }
}

TEST_F(ConvTest, ZeroExtents) {
  CheckBoth({{7}, 0, 5, {3}, {Same(3)}, 2});
  CheckBoth({{7}, 0, 5, {3}, {Same(3)}, 2, true, true, Activation::kSilu});
  CheckBoth({{7}, 4, 0, {3}, {Same(3)}, 2});
  CheckBoth({{7}, 4, 5, {3}, {Same(3)}, 0});
  CheckBoth({{0}, 4, 5, {3}, {Axis(1, 1, 1, 1)}, 2});
}

TEST_F(ConvTest, ThreadsDoNotChangeTheResult) {
  const Tensor w = MakeRandom({40, 20, 3, 3});
  const Tensor x = MakeRandom({2, 19, 17, 20});
  ConvOptions options;
  options.axes[0] = options.axes[1] = Same(3);
  std::vector<uint8_t> first;
  for (const int threads : {1, 2, 3, 7}) {
    CpuDeviceOptions device_options;
    device_options.threads = threads;
    auto made = CpuDevice::Create(device_options);
    ASSERT_TRUE(made.ok());
    const std::unique_ptr<CpuDevice> device = *std::move(made);
    auto weight = device->PrepareConv(w, Tensor(), MemoryOwner::kWeightsVideoVae);
    ASSERT_TRUE(weight.ok());
    auto y = device->Conv(x, *weight, options);
    ASSERT_TRUE(y.ok());
    std::vector<uint8_t> bytes(y->num_bytes());
    ASSERT_TRUE(device->Download(*y, absl::MakeSpan(bytes)).ok());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads;
  }
}

TEST_F(ConvTest, Transposed) {
  struct TransposedCase {
    int64_t batch, length, in, out, kernel, stride, padding;
  };
  for (const TransposedCase& c :
       std::vector<TransposedCase>{{2, 9, 5, 7, 4, 2, 1},
                                   {1, 1, 3, 2, 3, 1, 0},
                                   {1, 13, 48, 24, 16, 8, 4},
                                   {2, 11, 24, 12, 11, 5, 3},
                                   {1, 7, 6, 40, 3, 5, 0},  // gaps between the taps: bias alone
                                   {1, 7, 6, 4, 12, 2, 7},  // padding beyond a stride
                                   {1, 250, 17, 33, 15, 6, 4},
                                   {1, 3, 600, 5, 4, 2, 1},  // a sum in several pieces
                                   {1, 40, 8, 100, 16, 10, 3},
                                   {1, 2, 4, 3, 2, 1, 4},  // all of it cropped
                                   {2, 0, 4, 3, 2, 2, 0},
                                   {2, 5, 0, 3, 2, 2, 0},
                                   {0, 5, 3, 3, 2, 2, 0}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(absl::StrCat(c.length, "x", c.in, "->", c.out, " k", c.kernel, " s", c.stride,
                                " p", c.padding, " ", DTypeName(dtype)));
      const Tensor x = MakeRandom({c.batch, c.length, c.in}, dtype);
      const Tensor w = MakeRandom({c.in, c.out, c.kernel}, dtype);
      const Tensor b = MakeRandom({c.out}, dtype);
      auto weight = device_->PrepareConvTranspose1d(w, b, MemoryOwner::kWeightsAudioVae);
      ASSERT_TRUE(weight.ok()) << weight.status();
      auto y = device_->ConvTranspose1d(x, *weight, c.stride, c.padding);
      ASSERT_TRUE(y.ok()) << y.status();
      const int64_t length =
          c.length == 0
              ? 0
              : std::max<int64_t>(0, (c.length - 1) * c.stride - 2 * c.padding + c.kernel);
      ASSERT_EQ(y->shape(), Shape({c.batch, length, c.out}));
      const std::vector<float> xs = Values(x);
      const std::vector<float> ws = Values(w);
      const std::vector<float> bs = Values(b);
      std::vector<double> want(c.batch * length * c.out);
      for (size_t i = 0; i < want.size(); ++i) want[i] = bs[i % c.out];
      for (int64_t bi = 0; bi < c.batch; ++bi)
        for (int64_t t = 0; t < c.length; ++t)
          for (int64_t k = 0; k < c.kernel; ++k) {
            const int64_t u = t * c.stride + k - c.padding;
            if (u < 0 || u >= length) continue;
            for (int64_t ic = 0; ic < c.in; ++ic)
              for (int64_t oc = 0; oc < c.out; ++oc)
                want[(bi * length + u) * c.out + oc] +=
                    static_cast<double>(xs[(bi * c.length + t) * c.in + ic]) *
                    ws[(ic * c.out + oc) * c.kernel + k];
          }
      const double terms = c.in * ((c.kernel + c.stride - 1) / c.stride) + 1.0;
      const double half_ulp = dtype == DType::kBF16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -21);
      ExpectClose(Values(*y), want, half_ulp, 4 * std::ldexp(2 * terms, -24) + 1e-7);
    }
  }
}

TEST_F(ConvTest, MisfitsAreRefused) {
  auto weight =
      device_->PrepareConv(MakeRandom({4, 7, 3}), Tensor(), MemoryOwner::kWeightsAudioVae);
  ASSERT_TRUE(weight.ok());
  ConvOptions options;
  const auto code = [&](const Tensor& x) {
    return device_->Conv(x, *weight, options).status().code();
  };
  EXPECT_EQ(code(MakeRandom({1, 9, 6})), absl::StatusCode::kInternal);
  EXPECT_EQ(code(MakeRandom({1, 9, 9, 7})), absl::StatusCode::kInternal);
  EXPECT_EQ(code(MakeRandom({1, 2, 7})), absl::StatusCode::kInternal);
  EXPECT_EQ(code(MakeRandom({1, 9, 7}, DType::kBF16)), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->ConvTranspose1d(MakeRandom({1, 9, 7}), *weight, 1, 0).status().code(),
            absl::StatusCode::kInternal);
  options.residual = MakeRandom({1, 9, 4});
  EXPECT_EQ(code(MakeRandom({1, 9, 7})), absl::StatusCode::kInternal);
  EXPECT_EQ(device_->PrepareConv(MakeRandom({4, 7}), Tensor(), MemoryOwner::kWeightsAudioVae)
                .status()
                .code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(device_->PrepareConv(MakeRandom({4, 7, 0}), Tensor(), MemoryOwner::kWeightsAudioVae)
                .status()
                .code(),
            absl::StatusCode::kInternal);
}

TEST_F(ConvTest, FailedAllocations) {
  const Tensor x = MakeRandom({1, 21, 6});
  const Tensor w = MakeRandom({6, 6, 4});
  const Tensor b = MakeRandom({6});
  ExpectSurvivesEveryFailedAllocation([&]() -> absl::StatusOr<Tensor> {
    auto weight = device_->PrepareConv(w, b, MemoryOwner::kWeightsAudioVae);
    if (!weight.ok()) return weight.status();
    return device_->Conv(x, *weight, {});
  });
  ExpectSurvivesEveryFailedAllocation([&]() -> absl::StatusOr<Tensor> {
    auto weight = device_->PrepareConvTranspose1d(w, b, MemoryOwner::kWeightsAudioVae);
    if (!weight.ok()) return weight.status();
    return device_->ConvTranspose1d(x, *weight, 2, 1);
  });
}

}  // namespace
}  // namespace ltx::cpu
