#include "engine/checkpoint/stored_form.h"

#include <string>

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::HasSubstr;

class StoredFormTest : public ::testing::Test {
 public:
  absl::StatusOr<StoredForm> Detect(const std::string& name = "m.weight") {
    const std::string path = MakeTestFolder("stored_form") + "/case.safetensors";
    writer_.WriteTo(path);
    WeightSet set;
    const absl::Status status = set.Add(SafetensorsFile::Open(path).value());
    if (!status.ok()) return status;
    return DetectStoredForm(set, name);
  }
  StoredFormTest& Weight(DType dtype, const Shape& shape = {4, 8}) {
    return Tensor("m.weight", dtype, shape);
  }
  StoredFormTest& Tensor(const std::string& name, DType dtype, const Shape& shape) {
    writer_.Raw(name, dtype, shape, std::string(shape.num_elements() * SizeOf(dtype), '\x01'));
    return *this;
  }
  StoredFormTest& Marker(const std::string& name, const std::string& text) {
    writer_.Raw(name, DType::kU8, {static_cast<int64_t>(text.size())}, text);
    return *this;
  }

 protected:
  SafetensorsWriter writer_;
};

TEST_F(StoredFormTest, Plain) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    EXPECT_EQ(*Weight(dtype).Detect(), StoredForm::kPlain);
  }
}

TEST_F(StoredFormTest, PlainWeightBesideAnInputScaleStaysPlain) {
  Weight(DType::kBF16).Tensor("m.input_scale", DType::kF32, {});
  EXPECT_EQ(*Detect(), StoredForm::kPlain);
}

TEST_F(StoredFormTest, Fp8) {
  EXPECT_EQ(*Weight(DType::kF8E4M3).Detect(), StoredForm::kUnscaledFp8);
  EXPECT_EQ(*Tensor("m.weight_scale", DType::kF32, {}).Detect(), StoredForm::kScaledFp8);
  EXPECT_EQ(*Weight(DType::kF8E5M2).Detect(), StoredForm::kScaledFp8);
}

TEST_F(StoredFormTest, Fp8OfATensorThatIsNoWeight) {
  Tensor("table", DType::kF8E4M3, {4}).Tensor("table_scale", DType::kF32, {});
  EXPECT_EQ(*Detect("table"), StoredForm::kScaledFp8);
}

TEST_F(StoredFormTest, Nvfp4NeedsBothScales) {
  EXPECT_EQ(Weight(DType::kU8).Detect().status().code(), absl::StatusCode::kInvalidArgument);
  const auto half = Tensor("m.weight_scale", DType::kF8E4M3, {128, 4}).Detect();
  EXPECT_EQ(half.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(half.status().message()), HasSubstr("m.weight_scale_2"));
  EXPECT_EQ(*Tensor("m.weight_scale_2", DType::kF32, {}).Detect(), StoredForm::kNvfp4);
}

TEST_F(StoredFormTest, MarkersWin) {
  Weight(DType::kU8)
      .Tensor("m.weight_scale", DType::kF8E4M3, {128, 4})
      .Tensor("m.weight_scale_2", DType::kF32, {});
  EXPECT_EQ(*Marker("m.torchao_nvfp4", R"({"block_size":16})").Detect(), StoredForm::kTorchaoNvfp4);
  EXPECT_EQ(*Marker("m.comfy_quant", R"({"format":"nvfp4"})").Detect(), StoredForm::kNvfp4);
}

TEST_F(StoredFormTest, Flattened) {
  Tensor("m._weight_qdata", DType::kU8, {4, 4});
  EXPECT_EQ(*Detect(), StoredForm::kTorchaoFlattened);
}

TEST_F(StoredFormTest, Int8) {
  Weight(DType::kI8);
  EXPECT_EQ(Detect().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*Tensor("m.weight_scale", DType::kF32, {4, 1}).Detect(), StoredForm::kInt8);
  Marker("m.comfy_quant", R"({"format":"int8_tensorwise"})");
  EXPECT_EQ(*Detect(), StoredForm::kInt8);
  Marker("m.comfy_quant", R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":256})");
  EXPECT_EQ(*Detect(), StoredForm::kInt8ConvRot);
}

TEST_F(StoredFormTest, RefusesOtherMarkersByName) {
  Weight(DType::kU8);
  const auto form = Marker("m.comfy_quant", R"({"format":"mxfp8"})").Detect();
  EXPECT_EQ(form.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(form.status().message()), HasSubstr("mxfp8"));
  EXPECT_THAT(std::string(form.status().message()), HasSubstr("m.comfy_quant"));
  for (const char* text : {"", "nonsense", "[]", "{}", R"({"format":3})"}) {
    EXPECT_EQ(Marker("m.comfy_quant", text).Detect().status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST_F(StoredFormTest, MissingAndIntegerTensors) {
  EXPECT_EQ(Weight(DType::kF32).Detect("other").status().code(), absl::StatusCode::kNotFound);
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kBool, DType::kI16}) {
    const auto form = Weight(dtype).Detect();
    EXPECT_EQ(form.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(form.status().message()), HasSubstr(std::string(DTypeName(dtype))));
  }
}

}  // namespace
}  // namespace ltx::checkpoint
