#include "kernels/shape_device.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx {
namespace {

using Results = std::vector<Tensor>;
/// Makes its operands on the device, calls ResetPeaks(), runs one operation, returns the results.
using Program = std::function<Results(Device&)>;

class ShapeDeviceTest : public ::testing::TestWithParam<DType> {
 protected:
  ShapeDeviceTest() : cpu_(cpu::CpuDevice::Create({}).value()), shape_(cpu_.get()) {}

  static Tensor Ones(Device& device, const Shape& shape, DType dtype = GetParam()) {
    return TensorFromFloats(device, std::vector<float>(shape.num_elements(), 1.0f), shape, dtype)
        .value();
  }

  /// The program gives the same shapes and dtypes on both devices, and asks for the same memory.
  void ExpectSame(const Program& program, const char* name) {
    const Results expected = program(*cpu_);
    const MemoryLedger::Snapshot real = cpu_->ledger().Read();
    const Results seen = program(shape_);
    const MemoryLedger::Snapshot booked = shape_.ledger().Read();
    ASSERT_EQ(seen.size(), expected.size()) << name;
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].shape(), expected[i].shape()) << name;
      EXPECT_EQ(seen[i].dtype(), expected[i].dtype()) << name;
    }
    EXPECT_EQ(booked.total.live_bytes, real.total.live_bytes) << name;
    EXPECT_EQ(booked.total.peak_bytes, real.total.peak_bytes) << name;
  }

  std::unique_ptr<cpu::CpuDevice> cpu_;
  ShapeDevice shape_;
};

/// Says of attention that its first use prepares something, once for each number of queries, and
/// that its scratch depends on where its operands lie.
class ChoosingScratch final : public OpScratch {
 public:
  ScratchBlocks Linear(const LinearSize&) const override { return 0; }
  ScratchBlocks Conv(const ConvSize&) const override { return 0; }
  /// Bytes that tell where the operands lie.
  ScratchBlocks Attention(const AttentionSize& size) const override {
    return {28000 * size.q.pitch, 88000 * size.k.begin + size.v.begin};
  }
  ScratchBlocks GroupNorm(const GroupNormSize&) const override { return 0; }
  FirstUse FirstUseOf(const AttentionSize& size) const override {
    FirstUse first_use;
    first_use.key = static_cast<uint64_t>(size.queries);
    first_use.preparation.attentions = 1;
    return first_use;
  }
};

class ChoosingDevice final : public ShapeDevice {
 public:
  using ShapeDevice::ShapeDevice;
  const OpScratch& op_scratch() const override { return scratch_; }
  bool can_record() const override { return true; }

  int64_t Peak(MemoryOwner owner) {
    return ledger().Read().by_owner[static_cast<int>(owner)].peak_bytes;
  }

 private:
  const ChoosingScratch scratch_{};
};

TEST_P(ShapeDeviceTest, WhatSeveralOperationsPrepareIsBookedOnce) {
  ChoosingDevice device(cpu_.get());
  const auto attend = [&](int64_t queries) {
    const Preparation before = device.prepared();
    const Columns q = Ones(device, {1, queries, 8});
    EXPECT_TRUE(device.Attention(q, q, q, {}).ok());
    return device.prepared() - before;
  };
  EXPECT_EQ(attend(16).attentions, 1);
  EXPECT_FALSE(attend(16).any());
  EXPECT_EQ(attend(32).attentions, 1);
  device.ForgetPrepared();
  EXPECT_EQ(attend(16).attentions, 1);
  EXPECT_EQ(device.prepared().attentions, 3);
}

/// The result of an operation on operands of these shapes, measured from where they exist.
template <typename Operation>
Program Of(const std::vector<Shape>& shapes, DType dtype, const Operation& operation) {
  return [shapes, dtype, operation](Device& device) {
    std::vector<Tensor> operands;
    operands.reserve(shapes.size());
    for (const Shape& shape : shapes) {
      operands.push_back(
          TensorFromFloats(device, std::vector<float>(shape.num_elements(), 1.0f), shape, dtype)
              .value());
    }
    device.ledger().ResetPeaks();
    return Results{operation(device, operands).value()};
  };
}

using Operands = const std::vector<Tensor>&;

TEST_P(ShapeDeviceTest, NormsAndElementwise) {
  const DType t = GetParam();
  const Shape x = {2, 5, 24};
  const Shape c = {24};
  ExpectSame(Of({x, c}, t, [](Device& d, Operands o) { return d.RmsNorm(o[0], o[1], 1e-6f); }),
             "RmsNorm");
  ExpectSame(Of({x, {2, 5, 72}}, t,
                [](Device& d, Operands o) -> absl::StatusOr<Tensor> {
                  Columns columns(o[1], 24, 24);
                  if (auto done = d.RmsNormInto(o[0], 1e-6f, &columns); !done.ok()) return done;
                  return o[1];
                }),
             "RmsNormInto");
  const auto rows = [](const Tensor& tensor) { return RowVectors{tensor, Tensor(), 0}; };
  const Shape vectors = {1, 24};
  ExpectSame(Of({x, vectors}, t,
                [rows](Device& d, Operands o) {
                  return d.LayerNormModulate(o[0], 1e-6f, rows(o[1]), rows(o[1]));
                }),
             "LayerNormModulate");
  ExpectSame(Of({x, vectors}, t,
                [rows](Device& d, Operands o) { return d.Modulate(o[0], rows(o[1]), rows(o[1])); }),
             "Modulate");
  GroupNormOptions groups;
  groups.groups = 8;
  ExpectSame(Of({{2, 90, 3, 24}, c, c}, t,
                [groups](Device& d, Operands o) { return d.GroupNorm(o[0], o[1], o[2], groups); }),
             "GroupNorm");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.Apply(o[0], Activation::kSilu); }),
             "Apply");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.LeakyRelu(o[0], 0.1f); }),
             "LeakyRelu");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.Clamp(o[0], 0, 1); }), "Clamp");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.SoftCap(o[0], 30); }), "SoftCap");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.LogFloor(o[0], 1e-5f); }), "LogFloor");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.Magnitude(o[0]); }), "Magnitude");
  ExpectSame(Of({x, x}, t, [](Device& d, Operands o) { return d.Add(o[0], o[1]); }), "Add");
  ExpectSame(
      Of({{3, 24}, {2, 24}}, t, [](Device& d, Operands o) { return d.OuterSum(o[0], o[1]); }),
      "OuterSum");
  ExpectSame(Of({x, x}, t, [](Device& d, Operands o) { return d.GeluTanhMul(o[0], o[1]); }),
             "GeluTanhMul");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.Scale(o[0], 2); }), "Scale");
  ExpectSame(Of({x, c, c}, t,
                [](Device& d, Operands o) { return d.ScaleShiftChannels(o[0], o[1], o[2]); }),
             "ScaleShiftChannels");
  ExpectSame(
      Of({x, c, c}, t, [](Device& d, Operands o) { return d.NormalizeChannels(o[0], o[1], o[2]); }),
      "NormalizeChannels");
  ExpectSame(Of({{1, 2, 3, 4, 24}, {3, 4}, c}, t,
                [](Device& d, Operands o) { return d.AddSpatialNoise(o[0], o[1], o[2]); }),
             "AddSpatialNoise");
  ExpectSame(
      Of({{1, 40, 6}, {12}, {12}, {6}, {6}}, DType::kF32,
         [](Device& d, Operands o) { return d.AntiAliasedSnake(o[0], o[1], o[2], o[3], o[4]); }),
      "AntiAliasedSnake");
}

TEST_P(ShapeDeviceTest, InPlaceOperationsKeepTheirOperand) {
  const DType t = GetParam();
  ExpectSame(
      [t](Device& d) {
        Tensor state = Ones(d, {1, 5, 24}, t);
        ResidualUpdate update;
        update.value = Ones(d, {1, 5, 24}, t);
        d.ledger().ResetPeaks();
        Results results =
            d.ResidualNorm(&state, update, 1e-6f, {NormReading(), NormReading()}).value();
        results.push_back(state);
        return results;
      },
      "ResidualNorm");
  ExpectSame(
      [t](Device& d) {
        Tensor x = Ones(d, {1, 5, 24}, t);
        const Tensor logits = Ones(d, {1, 5, 4}, t);
        d.ledger().ResetPeaks();
        EXPECT_TRUE(d.HeadGate(&x, logits).ok());
        return Results{x};
      },
      "HeadGate");
  ExpectSame(
      [t](Device& d) {
        NormRopePart part;
        part.x = Ones(d, {1, 5, 24}, t);
        part.options.heads = 4;
        d.ledger().ResetPeaks();
        EXPECT_TRUE(d.NormRopeInPlace({part}).ok());
        return Results{part.x.tensor};
      },
      "NormRopeInPlace");
}

TEST_P(ShapeDeviceTest, Attention) {
  const DType t = GetParam();
  AttentionOptions options;
  options.heads = 4;
  options.kv_heads = 2;
  ExpectSame(
      Of({{2, 70, 24}, {2, 9, 12}, {2, 9, 12}}, t,
         [options](Device& d, Operands o) { return d.Attention(o[0], o[1], o[2], options); }),
      "Attention");
  NormRopeOptions rope;
  rope.heads = 4;
  ExpectSame(Of({{2, 70, 24}}, t, [rope](Device& d, Operands o) { return d.NormRope(o[0], rope); }),
             "NormRope");
  const Shape table = {1, 4, 70, 3};
  ExpectSame(Of({{2, 70, 24}, table, table}, t,
                [](Device& d, Operands o) {
                  RopeTable tables;
                  tables.cos = o[1];
                  tables.sin = o[2];
                  return d.Rope(o[0], 4, tables);
                }),
             "Rope");
}

TEST_P(ShapeDeviceTest, ResultsOfProducts) {
  const DType t = GetParam();
  for (Device* device : {static_cast<Device*>(cpu_.get()), static_cast<Device*>(&shape_)}) {
    Device& d = *device;
    const LinearWeight linear =
        d.PrepareLinear(Ones(d, {7, 5}, t), Ones(d, {7}, t), MemoryOwner::kWeightsDit).value();
    EXPECT_EQ(linear.in_features, 5);
    EXPECT_EQ(linear.out_features, 7);
    EXPECT_EQ(d.Linear(Ones(d, {2, 3, 5}, t), linear)->shape(), Shape({2, 3, 7}));
    const ConvWeight conv =
        d.PrepareConv(Ones(d, {6, 5, 3, 3}, t), Tensor(), MemoryOwner::kWeightsDit).value();
    ConvOptions strided;
    strided.axes[0].stride = 2;
    strided.axes[1].pad_before = 1;
    EXPECT_EQ(d.Conv(Ones(d, {2, 9, 13, 5}, t), conv, strided)->shape(), Shape({2, 4, 12, 6}));
    const ConvWeight transposed =
        d.PrepareConvTranspose1d(Ones(d, {6, 4, 8}, t), Tensor(), MemoryOwner::kWeightsDit).value();
    EXPECT_EQ(transposed.in_channels, 6);
    EXPECT_EQ(transposed.out_channels, 4);
    EXPECT_EQ(d.ConvTranspose1d(Ones(d, {1, 50, 6}, t), transposed, 4, 2)->shape(),
              Shape({1, 200, 4}));
  }
}

TEST_P(ShapeDeviceTest, ByteFrames) {
  ExpectSame(
      [](Device& d) {
        const Tensor frames = Ones(d, {3, 6, 10, 3}, DType::kF32);
        d.ledger().ResetPeaks();
        const ByteFrames bytes = d.ToByteFrames(frames, MemoryOwner::kMedia).value();
        return Results{bytes.rgb, bytes.i420};
      },
      "ToByteFrames");
}

TEST_P(ShapeDeviceTest, Layout) {
  const DType t = GetParam();
  const Shape x = {2, 4, 6};
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.Cast(o[0], DType::kF32); }), "Cast");
  ExpectSame(Of({x}, t,
                [](Device& d, Operands o) {
                  return d.Permute(o[0], {2, 0, 1});
                }),
             "Permute");
  ExpectSame(Of({x}, t, [](Device& d, Operands o) { return d.Slice(o[0], -1, 1, 4); }), "Slice");
  ExpectSame(Of({x, x}, t, [](Device& d, Operands o) { return d.Concat(o, 1); }), "Concat");
  ExpectSame(
      Of({x}, t, [](Device& d, Operands o) { return d.Pad(o[0], 1, 2, 1, PadMode::kZeros); }),
      "Pad");
  ExpectSame(Of({{3, 6}}, t,
                [](Device& d, Operands o) {
                  return d.GatherRows(o[0], std::vector<int32_t>{2, 0, 0, 1});
                }),
             "GatherRows");
  ExpectSame(Of({x, x, x}, t, [](Device& d, Operands o) { return d.Interleave(o); }), "Interleave");
  ExpectSame(Of({{1, 2, 3, 4, 16}}, t,
                [](Device& d, Operands o) {
                  return d.DepthToSpace(o[0], {2, 2, 2}, true);
                }),
             "DepthToSpace");
  ExpectSame(Of({{1, 3, 4, 5}}, t, [](Device& d, Operands o) { return d.UpsampleNearest2x(o[0]); }),
             "UpsampleNearest2x");
}

TEST_P(ShapeDeviceTest, DiffusionState) {
  const DType t = GetParam();
  const Shape x = {1, 4, 6};
  ExpectSame(Of({x, x}, t, [](Device& d, Operands o) { return d.Lerp(o[0], o[1], 0.3f); }), "Lerp");
  ExpectSame(
      Of({x, x}, t, [](Device& d, Operands o) { return d.EulerStep(o[0], o[1], 0.5f, 0.25f); }),
      "EulerStep");
  ExpectSame(
      Of({x, x}, t,
         [](Device& d, Operands o) { return d.LinearCombination(1, o[0], 2, o[1], 0, Tensor()); }),
      "LinearCombination");
  // The mask is f32 whatever the latents are.
  const auto masked = [t](const auto& operation) {
    return [t, operation](Device& d) {
      const Tensor a = Ones(d, {1, 4, 6}, t);
      const Tensor mask = Ones(d, {1, 4}, DType::kF32);
      d.ledger().ResetPeaks();
      return Results{operation(d, a, mask).value()};
    };
  };
  ExpectSame(masked([](Device& d, const Tensor& a, const Tensor& mask) {
               return d.LerpTokens(a, a, mask);
             }),
             "LerpTokens");
  ExpectSame(masked([](Device& d, const Tensor& a, const Tensor& mask) {
               return d.VelocityToDenoised(a, a, mask);
             }),
             "VelocityToDenoised");
  ExpectSame(masked([](Device& d, const Tensor& a, const Tensor& mask) {
               return d.BlendClean(a, a, mask);
             }),
             "BlendClean");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ShapeDeviceTest, ::testing::Values(DType::kF32, DType::kBF16));

TEST(ShapeDeviceWorkTest, CountsWhatIsComputed) {
  const auto cpu = cpu::CpuDevice::Create({}).value();
  ShapeDevice device(cpu.get());
  EXPECT_FALSE(device.holds_data());
  EXPECT_EQ(device.name(), "cpu");
  const auto tensor = [&](const Shape& shape) {
    return device.Allocate(shape, DType::kF32, MemoryOwner::kActivations).value();
  };
  const LinearWeight linear =
      device.PrepareLinear(tensor({7, 5}), Tensor(), MemoryOwner::kWeightsDit).value();
  device.ResetWork();
  EXPECT_TRUE(device.Linear(tensor({2, 3, 5}), linear, {}).ok());
  EXPECT_EQ(device.work().products, 6.0 * 5 * 7);
  EXPECT_EQ(device.work().bytes, 6.0 * 7 * 4);
  AttentionOptions options;
  options.heads = 2;
  options.kv_heads = 2;
  EXPECT_TRUE(
      device.Attention(tensor({1, 10, 8}), tensor({1, 20, 8}), tensor({1, 20, 8}), options).ok());
  EXPECT_EQ(device.work().attention, 10.0 * 20 * 8 * 2);
  EXPECT_EQ(device.work().operations, 2);
}

TEST_P(ShapeDeviceTest, AttentionTellsTheDeviceWhereItsOperandsLie) {
  ChoosingDevice device(cpu_.get());
  const Tensor fused = Ones(device, {1, 4, 27});
  AttentionOptions options;
  options.heads = options.kv_heads = 2;
  const auto attend = [&] {
    return device.Attention({fused, 0, 8}, {fused, 8, 8}, {fused, 16, 8}, options).status();
  };
  ASSERT_TRUE(attend().ok());
  EXPECT_EQ(device.Peak(MemoryOwner::kWorkspace), 28000 * 27 + 88000 * 8 + 16);
  // Two blocks of scratch below a MiB come from the pool's small segments, one of both would not.
  ASSERT_TRUE(device.Record(attend).ok());
  EXPECT_EQ(device.Peak(MemoryOwner::kRecordings), int64_t{8} << 20);
}

/// Stands for a device that records.
class RecordingShapes final : public ShapeDevice {
 public:
  using ShapeDevice::ShapeDevice;
  bool can_record() const override { return true; }
};

class ShapeRecordingTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMiB = int64_t{1} << 20;

  Tensor Bytes(int64_t bytes, MemoryOwner owner = MemoryOwner::kActivations) {
    return device_.Allocate({bytes}, DType::kU8, owner).value();
  }
  int64_t Live(MemoryOwner owner) {
    return device_.ledger().Read().by_owner[static_cast<int>(owner)].live_bytes;
  }
  /// A recording of one sum, whose result stays.
  std::unique_ptr<Recording> Record(const Tensor& x, Tensor* result) {
    auto recording = device_.Record([&]() -> absl::Status {
      const Tensor between = device_.Add(x, x).value();
      *result = device_.Add(between, x).value();
      return absl::OkStatus();
    });
    EXPECT_TRUE(recording.ok()) << recording.status();
    return *std::move(recording);
  }

  const std::unique_ptr<cpu::CpuDevice> cpu_ = cpu::CpuDevice::Create({}).value();
  RecordingShapes device_{cpu_.get()};
};

TEST_F(ShapeRecordingTest, HoldsSegmentsAndNotItsTensors) {
  const Tensor x =
      device_.Allocate({40 * kMiB / 4}, DType::kF32, MemoryOwner::kActivations).value();
  const int64_t before = Live(MemoryOwner::kActivations);
  device_.ledger().ResetPeaks();
  Tensor result;
  std::unique_ptr<Recording> first = Record(x, &result);
  EXPECT_EQ(
      device_.ledger().Read().by_owner[static_cast<int>(MemoryOwner::kActivations)].peak_bytes,
      before);
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 80 * kMiB);
  // Another one works where the first one's intermediate value was.
  Tensor other;
  std::unique_ptr<Recording> second = Record(x, &other);
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 120 * kMiB);
  first.reset();
  result = Tensor();
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 120 * kMiB) << "all recordings share one pool";
  second.reset();
  other = Tensor();
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 0);
  EXPECT_EQ(Live(MemoryOwner::kActivations), before);
}

TEST_F(ShapeRecordingTest, TwoLanesDoNotShareWhatEitherLetsGo) {
  const auto passing = [&]() -> absl::Status {
    return device_.Allocate({40 * kMiB}, DType::kU8, MemoryOwner::kWorkspace).status();
  };
  const auto one_after_the_other = device_.Record([&]() -> absl::Status {
    const absl::Status status = passing();
    return status.ok() ? passing() : status;
  });
  ASSERT_TRUE(one_after_the_other.ok());
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 40 * kMiB);
  const auto beside = device_.Record([&] { return device_.Concurrently(passing, passing); });
  ASSERT_TRUE(beside.ok());
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 80 * kMiB);
  const auto again = device_.Record([&] { return device_.Concurrently(passing, passing); });
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 80 * kMiB);
}

TEST_F(ShapeRecordingTest, CountsWorkOncePerReplay) {
  const Tensor x = Bytes(1000);
  device_.ResetWork();
  Tensor result;
  const std::unique_ptr<Recording> recording = Record(x, &result);
  EXPECT_EQ(device_.work().operations, 0);
  for (int replays = 1; replays <= 2; ++replays) {
    ASSERT_TRUE(device_.Replay(*recording).ok());
    EXPECT_EQ(device_.work().operations, 2 * replays);
    EXPECT_EQ(device_.work().bytes, 2000.0 * replays);
  }
}

TEST_F(ShapeRecordingTest, BooksWhatGoesBeyondTheAssumed) {
  device_.AssumeRecordings(5 * kMiB);
  const Tensor inputs = Bytes(4 * kMiB, MemoryOwner::kRecordings);
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 0);
  Tensor more = Bytes(3 * kMiB, MemoryOwner::kRecordings);
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 2 * kMiB);
  more = Tensor();
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 0);
  device_.AssumeRecordings(0);
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 4 * kMiB);
}

/// Stands for a device with recordings in these segments.
class SegmentedDevice final : public ShapeDevice {
 public:
  SegmentedDevice(const Device* modelled, std::vector<int64_t> segments)
      : ShapeDevice(modelled), segments_(std::move(segments)) {}
  std::vector<int64_t> recording_segments() const override { return segments_; }

 private:
  const std::vector<int64_t> segments_;
};

TEST_F(ShapeRecordingTest, NewOnesGoIntoTheSegmentsThatThereAre) {
  const auto recorded = [&](std::vector<int64_t> segments, int64_t assumed, int64_t bytes) {
    const SegmentedDevice modelled(cpu_.get(), std::move(segments));
    RecordingShapes device(&modelled);
    device.AssumeRecordings(assumed);
    const auto recording = device.Record(
        [&] { return device.Allocate({bytes}, DType::kU8, MemoryOwner::kWorkspace).status(); });
    EXPECT_TRUE(recording.ok()) << recording.status();
    return device.ledger().Read().by_owner[static_cast<int>(MemoryOwner::kRecordings)].live_bytes;
  };
  EXPECT_EQ(recorded({}, 0, 40 * kMiB), 40 * kMiB);
  EXPECT_EQ(recorded({48 * kMiB}, 48 * kMiB, 40 * kMiB), 0);
  // Nothing large is cut from the segments of small blocks, however much of them there is.
  EXPECT_EQ(recorded({8 * kMiB, 8 * kMiB, 8 * kMiB}, 24 * kMiB, 20 * kMiB), 20 * kMiB);
  EXPECT_EQ(recorded({8 * kMiB}, 8 * kMiB, kMiB / 2), 0);
}

TEST_F(ShapeRecordingTest, FailsAsTheWorkDoes) {
  const auto failed = device_.Record([] { return absl::NotFoundError("no"); });
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Live(MemoryOwner::kRecordings), 0);
  const Tensor after = Bytes(7);
  EXPECT_EQ(Live(MemoryOwner::kActivations), 7);
  ShapeDevice plain(cpu_.get());
  EXPECT_FALSE(plain.can_record());
  EXPECT_EQ(plain.Record([] { return absl::OkStatus(); }).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(ShapeDeviceWorkTest, NothingIsTransferred) {
  const auto cpu = cpu::CpuDevice::Create({}).value();
  ShapeDevice device(cpu.get());
  const Tensor tensor = device.Allocate({3}, DType::kF32, MemoryOwner::kMedia).value();
  EXPECT_TRUE(device.Upload(std::vector<uint8_t>(12), tensor).ok());
  EXPECT_FALSE(device.Upload(std::vector<uint8_t>(11), tensor).ok());
  EXPECT_TRUE(*device.AllFinite(tensor));
  EXPECT_EQ(device.ledger().Read().total.live_bytes, 12);
}

}  // namespace
}  // namespace ltx
