#include "engine/checkpoint/weight_loader.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"
#include "kernels/shape_device.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeightLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override { device_ = cpu::CpuDevice::Create({}).value(); }

  WeightLoader Load(const SafetensorsWriter& writer, DType compute = DType::kF32) {
    const std::string path = MakeTestFolder("weight_loader") + "/case.safetensors";
    writer.WriteTo(path);
    weights_ = WeightSet();
    EXPECT_TRUE(weights_.Add(SafetensorsFile::Open(path).value()).ok());
    return WeightLoader(device_.get(), &weights_, compute, MemoryOwner::kWeightsDit);
  }
  std::vector<float> Floats(const absl::StatusOr<Tensor>& tensor) {
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? ToFloats(*device_, *tensor).value() : std::vector<float>();
  }
  static void ExpectError(const absl::Status& status, absl::StatusCode code,
                          const std::string& tensor) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(tensor));
    EXPECT_THAT(std::string(status.message()), HasSubstr("case.safetensors"));
  }

  std::unique_ptr<Device> device_;
  WeightSet weights_;
};

TEST_F(WeightLoaderTest, ConvertsToTheComputeDType) {
  const std::string half("\x00\x3c\x00\xc0", 4);  // 1, -2
  const double wide[] = {1.0000000001, 3.0};
  SafetensorsWriter writer;
  writer.Floats("f32", {2}, {1.00390625f, 1.01171875f})
      .BFloat16s("bf16", {2}, {0.5f, -3.0f})
      .Raw("f16", DType::kF16, {2}, half)
      .Raw("f64", DType::kF64, {2},
           absl::string_view(reinterpret_cast<const char*>(wide), sizeof(wide)));
  WeightLoader loader = Load(writer);
  EXPECT_THAT(Floats(loader.Get("f32", {2})), ElementsAre(1.00390625f, 1.01171875f));
  EXPECT_THAT(Floats(loader.Get("bf16", {2})), ElementsAre(0.5f, -3.0f));
  EXPECT_THAT(Floats(loader.Get("f16", {2})), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(Floats(loader.Get("f64", {2})), ElementsAre(1.0f, 3.0f));

  WeightLoader rounding = Load(writer, DType::kBF16);
  const auto tensor = rounding.Get("f32", {2});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->dtype(), DType::kBF16);
  // Halfway cases go to the even neighbour.
  EXPECT_THAT(Floats(tensor), ElementsAre(1.0f, 1.015625f));
  EXPECT_EQ(rounding.GetF32("bf16", {2})->dtype(), DType::kF32);
  EXPECT_THAT(Floats(rounding.GetF32("f32", {2})), ElementsAre(1.00390625f, 1.01171875f));
  EXPECT_THAT(rounding.GetHost("f32", {2}).value(), ElementsAre(1.00390625f, 1.01171875f));
}

TEST_F(WeightLoaderTest, JoinsTensors) {
  SafetensorsWriter writer;
  writer.Floats("q.weight", {1, 2}, {1, 2})
      .Floats("q.bias", {1}, {10})
      .BFloat16s("gate.weight", {2, 2}, {3, 4, 5, 6})
      .Floats("gate.bias", {2}, {20, 30})
      .Floats("0.table", {2}, {1, 2})
      .Floats("1.table", {2}, {3, 4});
  WeightLoader loader = Load(writer);
  const auto stack = loader.GetStacked({"0.table", "1.table"}, {2});
  EXPECT_THAT(Floats(stack), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(stack->shape(), (Shape{2, 2}));
  ExpectError(loader.GetStacked({"0.table", "2.table"}, {2}).status(), absl::StatusCode::kNotFound,
              "2.table");

  const auto fused = loader.FusedLinear({{"q", 1}, {"gate", 2}}, 2);
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_EQ(fused->out_features, 3);
  const Tensor x = *TensorFromFloats(*device_, {1, 100}, {1, 2});
  EXPECT_THAT(Floats(device_->Linear(x, *fused)), ElementsAre(211, 423, 635));
  EXPECT_TRUE(loader.CheckAllConsumed().ok());
  ExpectError(loader.FusedLinear({{"q", 1}, {"gate", 3}}, 2).status(),
              absl::StatusCode::kInvalidArgument, "gate.weight");
}

TEST_F(WeightLoaderTest, ScalarsAndEmptyTensors) {
  WeightLoader loader = Load(SafetensorsWriter().Floats("s", {}, {7.0f}).Floats("e", {0, 3}, {}));
  EXPECT_THAT(Floats(loader.GetF32("s", {})), ElementsAre(7.0f));
  EXPECT_THAT(Floats(loader.Get("e", {0, 3})), ElementsAre());
}

TEST_F(WeightLoaderTest, ErrorsNameFileAndTensor) {
  SafetensorsWriter writer;
  writer.Floats("a.weight", {2, 3}, std::vector<float>(6, 1.0f))
      .Ints("ids", {1}, {1})
      .Raw("q.weight", DType::kF8E4M3, {2, 2}, "abcd")
      .Raw("p.weight", DType::kU8, {2, 2}, "abcd")
      .Raw("p.comfy_quant", DType::kU8, {18}, R"({"format":"mxfp8"})");
  WeightLoader loader = Load(writer);
  ExpectError(loader.Get("none", {1}).status(), absl::StatusCode::kNotFound, "none");
  ExpectError(loader.Get("a.weight", {3, 2}).status(), absl::StatusCode::kInvalidArgument,
              "[2, 3]");
  ExpectError(loader.Get("ids", {1}).status(), absl::StatusCode::kInvalidArgument, "I64");
  ExpectError(loader.Linear("q", 2, 2, false).status(), absl::StatusCode::kUnimplemented,
              "unscaled FP8");
  ExpectError(loader.Linear("p", 4, 2, false).status(), absl::StatusCode::kUnimplemented, "mxfp8");
  ExpectError(loader.Linear("a", 3, 2, true).status(), absl::StatusCode::kNotFound, "a.bias");
}

TEST_F(WeightLoaderTest, PacksLinearAndFreesTheRawTensors) {
  SafetensorsWriter writer;
  writer.Floats("m.weight", {2, 3}, {1, 2, 3, 4, 5, 6}).BFloat16s("m.bias", {2}, {10, 20});
  WeightLoader loader = Load(writer);
  const auto weight = loader.Linear("m", 3, 2);
  ASSERT_TRUE(weight.ok()) << weight.status();
  EXPECT_EQ(weight->in_features, 3);
  EXPECT_EQ(weight->out_features, 2);
  const MemoryLedger::Snapshot ledger = device_->ledger().Read();
  EXPECT_EQ(ledger.by_owner[static_cast<int>(MemoryOwner::kWorkspace)].live_bytes, 0);
  EXPECT_GT(ledger.by_owner[static_cast<int>(MemoryOwner::kWeightsDit)].live_bytes, 0);
  const auto x = TensorFromFloats(*device_, {1, 0, -1}, {1, 3});
  EXPECT_THAT(Floats(device_->Linear(*x, *weight)), ElementsAre(8.0f, 18.0f));
}

TEST_F(WeightLoaderTest, PacksConvolutions) {
  SafetensorsWriter writer;
  writer.Floats("c.weight", {1, 2, 3}, {1, 2, 3, 4, 5, 6})
      .Floats("c.bias", {1}, {0.5f})
      .Floats("t.weight", {1, 2, 2}, {1, 2, 3, 4});
  WeightLoader loader = Load(writer);
  const auto conv = loader.Conv("c", 2, 1, {3});
  ASSERT_TRUE(conv.ok()) << conv.status();
  EXPECT_EQ(conv->in_channels, 2);
  EXPECT_EQ(conv->out_channels, 1);
  EXPECT_EQ(conv->kernel, Shape({3}));
  const auto transposed = loader.ConvTranspose1d("t", 1, 2, 2, /*bias=*/false);
  ASSERT_TRUE(transposed.ok()) << transposed.status();
  EXPECT_EQ(transposed->out_channels, 2);
  EXPECT_TRUE(loader.CheckAllConsumed().ok());
}

TEST_F(WeightLoaderTest, CheckAllConsumedNamesWhatIsLeft) {
  SafetensorsWriter writer;
  for (const char* name : {"a.x", "a.y", "b.x", "b.extra.1", "b.extra.2", "c"}) {
    writer.Floats(name, {1}, {1.0f});
  }
  WeightLoader loader = Load(writer);
  WeightLoader a = loader.Sub("a.");
  WeightLoader b = loader.Sub("b.");
  EXPECT_TRUE(a.Has("x"));
  EXPECT_EQ(*a.ShapeOf("x"), Shape({1}));
  EXPECT_EQ(a.ShapeOf("z"), nullptr);
  ASSERT_TRUE(a.Get("x", {1}).ok());
  ExpectError(a.CheckAllConsumed(), absl::StatusCode::kInvalidArgument, "a.y");
  EXPECT_THAT(std::string(a.CheckAllConsumed().message()), ::testing::Not(HasSubstr("b.x")));
  ASSERT_TRUE(a.Get("y", {1}).ok());
  EXPECT_TRUE(a.CheckAllConsumed().ok());
  b.Ignore("extra.*");
  ASSERT_TRUE(b.GetHost("x", {1}).ok());
  EXPECT_TRUE(b.CheckAllConsumed().ok());
  // Sub loaders share their memory of what was asked for.
  ExpectError(loader.CheckAllConsumed(), absl::StatusCode::kInvalidArgument, "1 tensors");
  loader.Ignore("c");
  EXPECT_TRUE(loader.CheckAllConsumed().ok());
}

TEST_F(WeightLoaderTest, AWrongShapeDoesNotCountAsUsed) {
  WeightLoader loader = Load(SafetensorsWriter().Floats("x", {1}, {1.0f}));
  EXPECT_FALSE(loader.Get("x", {2}).ok());
  EXPECT_FALSE(loader.CheckAllConsumed().ok());
}

TEST_F(WeightLoaderTest, AFileThatHasBecomeShorterIsDataLoss) {
  SafetensorsWriter writer;
  writer.Floats("a", {4096}, std::vector<float>(4096, 1.0f))
      .Floats("b", {4096}, std::vector<float>(4096, 2.0f));
  WeightLoader loader = Load(writer);
  const std::string path = weights_.PathOf("a");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5000);
  EXPECT_EQ(Floats(loader.Get("a", {4096})), std::vector<float>(4096, 1.0f));
  ExpectError(loader.Get("b", {4096}).status(), absl::StatusCode::kDataLoss, "the file ends at");
}

/// A device without elements that keeps the operands of linears, and takes uploads that it does at
/// the end, or fails to.
class LateDevice final : public ShapeDevice {
 public:
  using ShapeDevice::ShapeDevice;
  bool holds_data() const override { return true; }
  bool keeps_linear_operands() const override { return true; }
  std::unique_ptr<Uploads> StartUploads() override { return std::make_unique<Late>(this); }

  absl::Status outcome;
  std::vector<std::vector<uint8_t>> uploaded;

 private:
  class Late final : public Uploads {
   public:
    explicit Late(LateDevice* device) : device_(device) {}
    absl::Status Add(std::shared_ptr<const ByteSource> source, const Tensor& tensor) override {
      EXPECT_EQ(source->size(), tensor.num_bytes());
      sources_.push_back(std::move(source));
      return absl::OkStatus();
    }
    absl::Status Finish() override {
      for (const auto& source : sources_) {
        std::vector<uint8_t> bytes(static_cast<size_t>(source->size()));
        // In two pieces, the later one first.
        const auto half = static_cast<int64_t>(bytes.size() / 2);
        const auto whole = absl::MakeSpan(bytes);
        EXPECT_TRUE(source->Read(half, whole.subspan(static_cast<size_t>(half))).ok());
        EXPECT_TRUE(source->Read(0, whole.first(static_cast<size_t>(half))).ok());
        device_->uploaded.push_back(std::move(bytes));
      }
      sources_.clear();
      return device_->outcome;
    }

   private:
    LateDevice* const device_;
    std::vector<std::shared_ptr<const ByteSource>> sources_;
  };
};

TEST_F(WeightLoaderTest, UploadsMayBeDoneAtTheEnd) {
  LateDevice late(device_.get());
  SafetensorsWriter writer;
  writer.Raw("a", DType::kF32, {2}, "12345678").Raw("b", DType::kF32, {1}, "abcd");
  Load(writer);
  {
    WeightLoader loader(&late, &weights_, DType::kF32, MemoryOwner::kWeightsDit);
    ASSERT_TRUE(loader.Get("a", {2}).ok());
    ASSERT_TRUE(loader.Get("b", {1}).ok());
    // Sources keep the file open.
    weights_ = WeightSet();
    EXPECT_TRUE(late.uploaded.empty());
    EXPECT_TRUE(loader.FinishUploads().ok());
    const std::string a = "12345678";
    const std::string b = "abcd";
    EXPECT_THAT(late.uploaded, ElementsAre(std::vector<uint8_t>(a.begin(), a.end()),
                                           std::vector<uint8_t>(b.begin(), b.end())));
  }
  Load(writer);
  WeightLoader loader(&late, &weights_, DType::kF32, MemoryOwner::kWeightsDit);
  late.outcome = absl::DataLossError("no disk");
  ASSERT_TRUE(loader.Get("a", {2}).ok());
  ASSERT_TRUE(loader.Get("b", {1}).ok());
  EXPECT_EQ(loader.CheckAllConsumed(), absl::DataLossError("no disk"));
}

/// Changes one weight by an operation of the device.
class Doubling final : public WeightPatch {
 public:
  std::vector<std::string> Names() const override { return {"v.weight"}; }
  bool Changes(absl::string_view name) const override { return name == "v.weight"; }
  absl::StatusOr<Tensor> Apply(Device& device, absl::string_view /*name*/,
                               const Tensor& weight) const override {
    return device.Scale(weight, 2.0f);
  }
};

TEST_F(WeightLoaderTest, OperandsThatADeviceKeepsAreAllocatedOnce) {
  LateDevice late(device_.get());
  SafetensorsWriter writer;
  writer.Floats("q.weight", {1, 2}, {1, 2})
      .Floats("q.bias", {1}, {10})
      .Floats("k.weight", {3, 2}, {3, 4, 5, 6, 7, 8})
      .Floats("k.bias", {3}, {20, 30, 40})
      .Floats("v.weight", {3, 2}, {3, 4, 5, 6, 7, 8})
      .Floats("v.bias", {3}, {20, 30, 40});
  Load(writer);
  WeightLoader loader(&late, &weights_, DType::kF32, MemoryOwner::kWeightsDit);
  const auto weights = [&] {
    return late.ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWeightsDit)].live_bytes;
  };
  const auto linear = loader.FusedLinear({{"q", 1}, {"k", 3}}, 2);
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(weights(), 4 * (8 + 4));
  EXPECT_EQ(late.ledger().Read().total.peak_bytes, weights());
  // What a patch has made is copied for its owner.
  const Doubling patch;
  const auto patched = loader.WithPatch(&patch).FusedLinear({{"k", 3}, {"v", 3}}, 2);
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(weights(), 4 * (8 + 4) + 4 * (12 + 6));
  EXPECT_EQ(late.ledger().Read().total.live_bytes, weights());
}

}  // namespace
}  // namespace ltx::checkpoint
