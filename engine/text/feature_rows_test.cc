#include "engine/text/feature_rows.h"

#include <cmath>
#include <memory>
#include <vector>

#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host_copy.h"

namespace ltx::text {
namespace {

using Form = checkpoint::FeatureExtractorConfig::Form;
using ::testing::FloatNear;
using ::testing::Pointwise;

class FeatureRowsTest : public ::testing::Test {
 protected:
  Tensor State(const std::vector<float>& values) {
    const auto tensor =
        TensorFromFloats(*device_, values, {1, static_cast<int64_t>(values.size()) / 2, 2});
    EXPECT_TRUE(tensor.ok());
    return *tensor;
  }
  int64_t LiveBytes() const { return device_->ledger().Read().total.live_bytes; }
  std::vector<float> Rows(Form form, const std::vector<Tensor>& states) {
    FeatureRows rows(device_.get(), form, static_cast<int64_t>(states.size()));
    for (const Tensor& state : states) EXPECT_TRUE(rows.Add(state).ok());
    const auto taken = rows.Take();
    EXPECT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->shape(),
              Shape({1, states[0].dim(1), 2 * static_cast<int64_t>(states.size())}));
    const auto values = ToFloats(*device_, *taken);
    EXPECT_TRUE(values.ok());
    return *values;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
};

TEST_F(FeatureRowsTest, TokensAreNormalisedAndStatesSideBySide) {
  // Root mean squares of the tokens: 5 / sqrt(2) and 1; sqrt(2) and 2.
  const float a = 3.0f / 5.0f * std::sqrt(2.0f), b = 4.0f / 5.0f * std::sqrt(2.0f);
  EXPECT_THAT(
      Rows(Form::kV2, {State({3, 4, -1, 1}), State({2, 0, 2, 2})}),
      Pointwise(FloatNear(1e-5f), std::vector<float>{a, b, std::sqrt(2.0f), 0, -1, 1, 1, 1}));
}

TEST_F(FeatureRowsTest, FirstFormCentresWholeStates) {
  // Means 2 and 0, ranges 4 and 8.
  EXPECT_THAT(Rows(Form::kV1, {State({0, 1, 3, 4}), State({-4, 4, 2, -2})}),
              Pointwise(FloatNear(1e-4f), std::vector<float>{-4, -2, -4, 4, 2, 4, 2, -2}));
}

TEST_F(FeatureRowsTest, EqualValuesStayFinite) {
  for (const Form form : {Form::kV1, Form::kV2}) {
    EXPECT_THAT(Rows(form, {State({0, 0}), State({0, 0})}),
                Pointwise(FloatNear(1e-6f), std::vector<float>{0, 0, 0, 0}));
  }
}

TEST_F(FeatureRowsTest, SecondFormTakesTheMemoryOfItsRowsAlone) {
  const Tensor state = State(std::vector<float>(128, 1.0f));
  const int64_t before = LiveBytes();
  device_->ledger().ResetPeaks();
  FeatureRows rows(device_.get(), Form::kV2, 5);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(rows.Add(state).ok());
  {
    const auto taken = rows.Take();
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(device_->ledger().Read().total.peak_bytes - before, taken->num_bytes());
    EXPECT_EQ(taken->num_bytes(), 5 * state.num_bytes());
  }
  EXPECT_EQ(LiveBytes(), before);
}

TEST_F(FeatureRowsTest, RefusesOtherStatesThanItWasMadeFor) {
  for (const Form form : {Form::kV1, Form::kV2}) {
    FeatureRows rows(device_.get(), form, 2);
    ASSERT_TRUE(rows.Add(State({1, 2})).ok());
    EXPECT_EQ(rows.Take().status().code(), absl::StatusCode::kInternal);
    ASSERT_TRUE(rows.Add(State({1, 2})).ok());
    EXPECT_EQ(rows.Add(State({1, 2})).code(), absl::StatusCode::kInternal);
  }
  FeatureRows rows(device_.get(), Form::kV2, 2);
  ASSERT_TRUE(rows.Add(State({1, 2})).ok());
  EXPECT_EQ(rows.Add(State({1, 2, 3, 4})).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(rows.Add(*State({1, 2}).Reshape({1, 2, 1})).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::text
