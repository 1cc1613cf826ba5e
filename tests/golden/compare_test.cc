#include "tests/golden/compare.h"

#include <cmath>
#include <limits>
#include <string>

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::golden {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class CompareTest : public ::testing::Test {
 protected:
  /// A case with float output y = [3, 4] (norm 5) unless a test adds others.
  GoldenCase Load(const std::string& tolerance) {
    const std::string path = checkpoint::MakeTestFolder("compare") + "/case.safetensors";
    writer_.Metadata("component", "test.compare").Metadata("tolerance", tolerance);
    writer_.WriteTo(path);
    auto golden = GoldenCase::Load(path);
    EXPECT_TRUE(golden.ok()) << golden.status();
    return *std::move(golden);
  }
  OutputComparison One(const std::string& tolerance) {
    const auto results = CompareOutputs(Load(tolerance), ours_);
    EXPECT_TRUE(results.ok()) << results.status();
    if (!results.ok() || results->size() != 1) return {};
    return results->front();
  }
  CompareTest() { writer_.Floats("out/y", {2}, {3.0f, 4.0f}); }

  checkpoint::SafetensorsWriter writer_;
  GoldenOutputs ours_;
};

TEST_F(CompareTest, EqualPasses) {
  ours_.SetFloats("y", {2}, {3.0f, 4.0f});
  const OutputComparison result = One("{}");
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.rel_l2, 0.0);
  EXPECT_EQ(result.max_abs, 0.0);
}

TEST_F(CompareTest, MeasuresErrors) {
  ours_.SetDoubles("y", {2}, {3.3, 3.6});
  const OutputComparison result = One(R"({"out/y":{"rel_l2":0.2,"max_abs":0.5}})");
  EXPECT_TRUE(result.passed);
  EXPECT_NEAR(result.rel_l2, 0.1, 1e-6);
  EXPECT_NEAR(result.max_abs, 0.4, 1e-6);
  EXPECT_NEAR(result.severity, 0.8, 1e-5);
}

TEST_F(CompareTest, OnAGridAStepOffIsRightInBFloat16Alone) {
  writer_.Remove("out/y").Ints("out/n", {1}, {465});
  const std::string exact = R"({"out/n":{"rel_l2":0,"max_abs":0}})";
  ours_.SetGridInts("n", {1}, {473}, 8);
  EXPECT_FALSE(One(exact).passed);
  ours_.JudgeAsBFloat16(3e-2);
  EXPECT_TRUE(One(exact).passed);
  ours_.SetGridInts("n", {1}, {481}, 8);
  EXPECT_FALSE(One(exact).passed);
  ours_.SetInts("n", {1}, {473});
  EXPECT_FALSE(One(exact).passed);
}

TEST_F(CompareTest, ResultsInBFloat16HaveTheWiderBoundAndNoAbsoluteOne) {
  ours_.SetDoubles("y", {2}, {3.3, 3.6});
  ours_.JudgeAsBFloat16(0.11);
  EXPECT_TRUE(One(R"({"out/y":{"rel_l2":1e-5,"max_abs":1e-5}})").passed);
  ours_.JudgeAsBFloat16(0.09);
  EXPECT_FALSE(One(R"({"out/y":{"rel_l2":1e-5,"max_abs":1e-5}})").passed);
  EXPECT_TRUE(One(R"({"out/y":{"rel_l2":0.2}})").passed);
}

TEST_F(CompareTest, BothBoundsHold) {
  ours_.SetDoubles("y", {2}, {3.3, 3.6});
  EXPECT_FALSE(One(R"({"out/y":{"rel_l2":0.09,"max_abs":0.5}})").passed);
  EXPECT_FALSE(One(R"({"out/y":{"rel_l2":0.2,"max_abs":0.3}})").passed);
  EXPECT_FALSE(One(R"({"out/y":{"max_abs":0.3}})").passed);
  EXPECT_TRUE(One(R"({"out/y":{"max_abs":0.5}})").passed);
  const OutputComparison result = One(R"({"out/y":{"rel_l2":0.05}})");
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.message, HasSubstr("rel_l2 0.1"));
  EXPECT_THAT(result.message, HasSubstr("element 1"));
}

TEST_F(CompareTest, ZeroBoundsMeanEqual) {
  constexpr char kZero[] = R"({"out/y":{"rel_l2":0,"max_abs":0}})";
  ours_.SetFloats("y", {2}, {3.0f, 4.0f});
  EXPECT_TRUE(One(kZero).passed);
  ours_.SetFloats("y", {2}, {3.0f, std::nextafter(4.0f, 5.0f)});
  EXPECT_FALSE(One(kZero).passed);
}

TEST_F(CompareTest, DefaultToleranceOfFloats) {
  ours_.SetDoubles("y", {2}, {3.0, 4.0 + 4e-5});
  EXPECT_TRUE(One("{}").passed);
  ours_.SetDoubles("y", {2}, {3.0, 4.0 + 6e-5});
  EXPECT_FALSE(One("{}").passed);
}

TEST_F(CompareTest, MissingNanAndInfinityFail) {
  constexpr char kWide[] = R"({"out/y":{"rel_l2":100,"max_abs":100}})";
  EXPECT_FALSE(One(kWide).passed);
  EXPECT_EQ(One(kWide).message, "missing");
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    ours_.SetDoubles("y", {2}, {3.0, bad});
    EXPECT_FALSE(One(kWide).passed);
    EXPECT_THAT(One(kWide).message, HasSubstr("1 of 2"));
  }
}

TEST_F(CompareTest, ShapeAndDTypeClassHaveToAgree) {
  constexpr char kWide[] = R"({"out/y":{"rel_l2":100,"max_abs":100}})";
  ours_.SetFloats("y", {1, 2}, {3.0f, 4.0f});
  EXPECT_FALSE(One(kWide).passed);
  ours_.SetFloats("y", {3}, {3.0f, 4.0f, 5.0f});
  EXPECT_FALSE(One(kWide).passed);
  // More elements than the shape says.
  ours_.SetFloats("y", {2}, {3.0f, 4.0f, 5.0f});
  EXPECT_FALSE(One(kWide).passed);
  ours_.SetInts("y", {2}, {3, 4});
  EXPECT_FALSE(One(kWide).passed);
  EXPECT_THAT(One(kWide).message, HasSubstr("integer"));
}

TEST_F(CompareTest, InformationOnly) {
  for (const char* tolerance :
       {R"({"out/y":{"ignore":true}})", R"({"out/y":{"rel_l2":1e9,"max_abs":1e9}})",
        R"({"out/y":{"max_abs":1e9}})"}) {
    GoldenOutputs none;
    ours_ = none;
    EXPECT_TRUE(One(tolerance).passed);
    ours_.SetFloats("y", {2}, {300.0f, 4.0f});
    EXPECT_TRUE(One(tolerance).passed);
    EXPECT_TRUE(One(tolerance).information_only);
    EXPECT_GT(One(tolerance).max_abs, 100.0);
  }
  EXPECT_FALSE(One(R"({"out/y":{"rel_l2":1e9,"max_abs":1}})").passed);
  EXPECT_FALSE(One(R"({"out/y":{"ignore":false}})").passed);
}

TEST_F(CompareTest, ZeroReferenceIsJudgedByMaxAbs) {
  writer_.Floats("out/y", {2}, {0.0f, 0.0f});
  ours_.SetDoubles("y", {2}, {1e-7, 0.0});
  EXPECT_TRUE(One(R"({"out/y":{"rel_l2":1e-9,"max_abs":1e-6}})").passed);
  EXPECT_FALSE(One(R"({"out/y":{"rel_l2":1e-9,"max_abs":1e-8}})").passed);
  EXPECT_FALSE(One("{}").passed);
  ours_.SetDoubles("y", {2}, {0.0, 0.0});
  EXPECT_TRUE(One("{}").passed);
}

TEST_F(CompareTest, EmptyOutputs) {
  writer_.Floats("out/y", {0, 3}, {});
  ours_.SetFloats("y", {0, 3}, {});
  EXPECT_TRUE(One("{}").passed);
  ours_.SetFloats("y", {0}, {});
  EXPECT_FALSE(One("{}").passed);
}

TEST_F(CompareTest, IntegersAndBytes) {
  writer_.Remove("out/y").Raw("out/y", DType::kU8, {2}, "\x02\xff");
  ours_.SetInts("y", {2}, {2, 255});
  EXPECT_TRUE(One("{}").passed);
  ours_.SetInts("y", {2}, {2, 254});
  EXPECT_FALSE(One("{}").passed);
  EXPECT_TRUE(One(R"({"out/y":{"rel_l2":1,"max_abs":1}})").passed);
  EXPECT_FALSE(One(R"({"out/y":{"rel_l2":1,"max_abs":0.5}})").passed);
  ours_.SetFloats("y", {2}, {2.0f, 255.0f});
  EXPECT_FALSE(One("{}").passed);
}

TEST_F(CompareTest, MalformedTolerance) {
  ours_.SetFloats("y", {2}, {3.0f, 4.0f});
  for (const char* tolerance : {R"({"out/y":1})", R"({"out/y":{"rel_l2":"1"}})",
                                R"({"out/y":{"max_abs":-1}})", R"({"out/y":{"rel_l2":null}})"}) {
    EXPECT_EQ(CompareOutputs(Load(tolerance), ours_).status().code(),
              absl::StatusCode::kInvalidArgument)
        << tolerance;
  }
}

TEST_F(CompareTest, CaseWithoutOutputs) {
  writer_.Remove("out/y");
  EXPECT_FALSE(CompareOutputs(Load("{}"), ours_).ok());
}

}  // namespace
}  // namespace ltx::golden
