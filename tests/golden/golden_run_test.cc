#include "tests/golden/golden_run.h"

#include <sstream>
#include <string>

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::golden {
namespace {

using checkpoint::MakeTestFolder;
using checkpoint::SafetensorsWriter;
using checkpoint::WriteTestFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// y = 2 x, and a stage z that is only in some cases.
absl::Status Double(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  auto x = golden.InputFloats("x");
  if (!x.ok()) return x.status();
  for (float& value : *x) value *= 2.0f;
  outputs->SetFloats("y", {static_cast<int64_t>(x->size())}, *x);
  outputs->SetFloats("z", {1}, {0.0f});
  return absl::OkStatus();
}

SafetensorsWriter Case(const std::string& component, float y) {
  SafetensorsWriter writer;
  writer.Metadata("component", component).Floats("in/x", {1}, {1.0f}).Floats("out/y", {1}, {y});
  return writer;
}

class GoldenRunTest : public ::testing::Test {
 protected:
  GoldenRunTest() : folder_(MakeTestFolder("golden_run")) {
    registry_["test.double"] = Double;
    registry_["test.error"] = [](const GoldenCase&, const GoldenContext&, GoldenOutputs*) {
      return absl::UnimplementedError("no such part");
    };
  }
  RunSummary Run(const std::vector<std::string>& only = {}) {
    std::stringstream out;
    const auto summary = RunCases({{folder_}, only}, registry_, {}, out);
    EXPECT_TRUE(summary.ok()) << summary.status();
    text_ = out.str();
    return *summary;
  }
  std::string folder_;
  ComponentRegistry registry_;
  std::string text_;
};

TEST_F(GoldenRunTest, CountsPassesFailuresAndModelFiles) {
  Case("test.double", 2.0f).WriteTo(folder_ + "/a.safetensors");
  Case("test.double", 2.5f).WriteTo(folder_ + "/deep/er/b.safetensors");
  Case("weights", 1.0f).WriteTo(folder_ + "/w.safetensors");
  Case("test.weights", 1.0f).WriteTo(folder_ + "/v.safetensors");
  SafetensorsWriter().Floats("x", {1}, {1.0f}).WriteTo(folder_ + "/model.safetensors");
  WriteTestFile(folder_ + "/README.md", "not a case");
  const RunSummary summary = Run();
  EXPECT_EQ(summary.passed, 1);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.model_files, 3);
  EXPECT_THAT(text_, HasSubstr("PASS test.double " + folder_ + "/a.safetensors"));
  EXPECT_THAT(text_, HasSubstr("FAIL test.double " + folder_ + "/deep/er/b.safetensors"));
  EXPECT_THAT(text_, HasSubstr("out/y: rel_l2 0.2"));
}

TEST_F(GoldenRunTest, UnknownComponentBadFileAndErrorAreFailures) {
  Case("test.unknown", 2.0f).WriteTo(folder_ + "/a.safetensors");
  Case("test.error", 2.0f).WriteTo(folder_ + "/b.safetensors");
  WriteTestFile(folder_ + "/c.safetensors", "garbage");
  Case("test.double", 2.0f).Metadata("params", "[]").WriteTo(folder_ + "/d.safetensors");
  const RunSummary summary = Run();
  EXPECT_EQ(summary.passed, 0);
  EXPECT_EQ(summary.failed, 4);
  EXPECT_THAT(text_, HasSubstr("unknown component"));
  EXPECT_THAT(text_, HasSubstr("no such part"));
  EXPECT_THAT(text_, HasSubstr("c.safetensors"));
  EXPECT_THAT(text_, HasSubstr("params"));
}

TEST_F(GoldenRunTest, OnlyTakesWholeNamesAndTrailingStars) {
  Case("test.double", 2.0f).WriteTo(folder_ + "/a.safetensors");
  Case("test.double.more", 2.0f).WriteTo(folder_ + "/b.safetensors");
  Case("test.doubled", 2.0f).WriteTo(folder_ + "/c.safetensors");
  RunSummary summary = Run({"test.double"});
  EXPECT_EQ(summary.passed, 1);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(summary.filtered, 2);
  summary = Run({"test.double.*"});
  EXPECT_EQ(summary.failed, 1);
  EXPECT_THAT(text_, HasSubstr("test.double.more"));
  summary = Run({"test.*"});
  EXPECT_EQ(summary.passed + summary.failed, 3);
  summary = Run({"test"});
  EXPECT_EQ(summary.passed + summary.failed, 0);
}

TEST_F(GoldenRunTest, MissingPathIsAnError) {
  std::stringstream out;
  EXPECT_EQ(RunCases({{folder_ + "/none"}, {}}, registry_, {}, out).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(GoldenRunTest, ComponentLists) {
  EXPECT_THAT(ParseComponentList("# all\na.b\n\n  c.*  # c\n#d\ne"),
              ElementsAre("a.b", "c.*", "e"));
  EXPECT_THAT(ParseComponentList("# none\n"), ElementsAre());
}

class GoldenCaseTest : public ::testing::Test {
 protected:
  GoldenCaseTest() : folder_(MakeTestFolder("golden_case")) {
    writer_.Metadata("component", "test.case");
  }
  absl::StatusOr<GoldenCase> Load() {
    writer_.WriteTo(folder_ + "/cases/case.safetensors");
    return GoldenCase::Load(folder_ + "/cases/case.safetensors");
  }
  std::string folder_;
  SafetensorsWriter writer_;
};

TEST_F(GoldenCaseTest, WeightsOfTheCaseAndOfANeighbour) {
  SafetensorsWriter()
      .Floats("weights/a.b", {1}, {1.0f})
      .Floats("in/x", {1}, {1.0f})
      .WriteTo(folder_ + "/neighbour.safetensors");
  SafetensorsWriter().Floats("a.c", {1}, {1.0f}).WriteTo(folder_ + "/model.safetensors");
  writer_.Floats("weights/own", {1}, {1.0f});
  EXPECT_THAT(Load()->weights().Names(), ElementsAre("own"));
  writer_.Metadata("weights_file", "../neighbour.safetensors");
  EXPECT_THAT(Load()->weights().Names(), ElementsAre("a.b", "own"));
  writer_.Metadata("weights_file", "../model.safetensors");
  EXPECT_THAT(Load()->weights().Names(), ElementsAre("a.c", "own"));
  EXPECT_EQ(Load()->weights_path(), folder_ + "/model.safetensors");
}

TEST_F(GoldenCaseTest, WeightsFileMayBeAFolderOrAModelSet) {
  writer_.Metadata("weights_file", "..");
  EXPECT_TRUE(Load()->weights().Names().empty());
  writer_.Metadata("weights_file", "../none");
  EXPECT_EQ(Load().status().code(), absl::StatusCode::kNotFound);
  writer_.Metadata("params", R"({"models":"ltx-tiny"})");
  EXPECT_TRUE(Load().ok());
}

TEST_F(GoldenCaseTest, RefusesMalformedCases) {
  writer_.Metadata("config", "{");
  EXPECT_FALSE(Load().ok());
  writer_.Metadata("config", "{}").Metadata("tolerance", "3");
  EXPECT_FALSE(Load().ok());
  writer_.RemoveMetadata("tolerance").RemoveMetadata("component");
  EXPECT_FALSE(Load().ok());
}

TEST_F(GoldenCaseTest, Inputs) {
  writer_.Floats("in/f", {2}, {1.5f, 2.0f})
      .BFloat16s("in/h", {1}, {0.5f})
      .Ints("in/i", {2}, {-1, 7})
      .Ints("in/wide", {1}, {int64_t{1} << 40})
      .Raw("in/u", DType::kU8, {2}, "\x01\xff")
      .Floats("out/y", {1}, {1.0f});
  const auto golden = Load();
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_THAT(golden->InputNames(), ElementsAre("f", "h", "i", "u", "wide"));
  EXPECT_THAT(golden->OutputNames(), ElementsAre("y"));
  EXPECT_TRUE(golden->HasInput("f"));
  EXPECT_FALSE(golden->HasInput("y"));
  EXPECT_TRUE(golden->HasOutput("y"));
  EXPECT_EQ(*golden->InputShape("f"), Shape({2}));
  EXPECT_EQ(*golden->InputDType("h"), DType::kBF16);
  EXPECT_EQ(golden->InputShape("none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*golden->InputFloats("h"), ElementsAre(0.5f));
  EXPECT_THAT(*golden->InputDoubles("f"), ElementsAre(1.5, 2.0));
  EXPECT_THAT(*golden->InputInts("i"), ElementsAre(-1, 7));
  EXPECT_EQ(golden->InputInts("f").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*golden->InputBytes("u"), ElementsAre(1, 255));
  EXPECT_EQ(golden->InputBytes("f").status().code(), absl::StatusCode::kInvalidArgument);

  const auto device = cpu::CpuDevice::Create({}).value();
  EXPECT_EQ(golden->Input(*device, "f")->dtype(), DType::kF32);
  EXPECT_EQ(golden->Input(*device, "f", DType::kBF16)->dtype(), DType::kBF16);
  EXPECT_EQ(golden->Input(*device, "i")->dtype(), DType::kI32);
  EXPECT_EQ(golden->Input(*device, "u")->dtype(), DType::kU8);
  EXPECT_EQ(golden->Input(*device, "wide").status().code(), absl::StatusCode::kInvalidArgument);

  GoldenOutputs outputs;
  ASSERT_TRUE(outputs.Set(*device, "f", *golden->Input(*device, "f", DType::kBF16)).ok());
  ASSERT_TRUE(outputs.Set(*device, "i", *golden->Input(*device, "i")).ok());
  EXPECT_THAT(outputs.values().at("f").elements, ElementsAre(1.5, 2.0));
  EXPECT_EQ(outputs.values().at("i").kind, GoldenOutputs::Kind::kInteger);
  EXPECT_THAT(outputs.values().at("i").elements, ElementsAre(-1, 7));
  EXPECT_FALSE(outputs.Set(*device, "undefined", Tensor()).ok());
}

}  // namespace
}  // namespace ltx::golden
