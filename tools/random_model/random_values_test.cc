#include "tools/random_model/random_values.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::random_model {
namespace {

std::vector<float> Values(const ValueRange& range, uint64_t seed, int64_t begin, int64_t count) {
  std::vector<BFloat16> values(count);
  FillRandom(range, seed, begin, absl::MakeSpan(values));
  return {values.begin(), values.end()};
}

/// Mean and standard deviation.
std::pair<double, double> Moments(const std::vector<float>& values) {
  double sum = 0.0;
  double squares = 0.0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count - sum / count * sum / count)};
}

std::pair<double, double> MomentsOf(const char* name, const Shape& shape) {
  return Moments(Values(RangeOf(name, shape), 3, 0, 30000));
}

TEST(RandomValuesTest, ProductsKeepTheVarianceOfTheirInput) {
  for (const auto& [shape, fan_in] : std::vector<std::pair<Shape, double>>{
           {{100, 300}, 300.0}, {{8, 16, 3, 3, 3}, 432.0}, {{262144, 3840}, 3840.0}}) {
    const auto [mean, deviation] = MomentsOf("a.weight", shape);
    EXPECT_NEAR(mean * std::sqrt(fan_in), 0.0, 0.03);
    EXPECT_NEAR(deviation * std::sqrt(fan_in), 1.0, 0.02);
  }
}

TEST(RandomValuesTest, ThePictureIsOfLowContrast) {
  const char* const name = "decoder.conv_out.conv.weight";
  EXPECT_NEAR(MomentsOf(name, {48, 128, 3, 3, 3}).second * std::sqrt(128.0 * 27), 0.125, 0.01);
  // The sound's decoder ends in a layer of the same name.
  EXPECT_NEAR(MomentsOf(name, {2, 128, 3, 3}).second * std::sqrt(128.0 * 9), 1.0, 0.02);
}

TEST(RandomValuesTest, FactorsLieAroundOne) {
  for (const char* name : {"q_norm.weight", "input_layernorm.weight", "norm1.weight",
                           "per_channel_statistics.std-of-means", "layers.3.layer_scalar"}) {
    const auto [mean, deviation] = MomentsOf(name, {64});
    EXPECT_NEAR(mean, 1.0, 0.01) << name;
    EXPECT_LT(deviation, 0.1) << name;
    EXPECT_GT(deviation, 0.01) << name;
  }
}

TEST(RandomValuesTest, FiltersPassAConstantAndTheRestIsSmall) {
  EXPECT_NEAR(12 * MomentsOf("up.filter", {1, 1, 12}).first, 1.0, 0.01);
  for (const char* name : {"a.bias", "scale_shift_table", "mean-of-means", "norm1.bias"}) {
    EXPECT_NEAR(MomentsOf(name, {9, 64}).first, 0.0, 0.01) << name;
    EXPECT_LT(MomentsOf(name, {9, 64}).second, 0.1) << name;
  }
}

TEST(RandomValuesTest, PartsAndWholeAgree) {
  const ValueRange range = {0.0f, 1.0f};
  const std::vector<float> whole = Values(range, 5, 0, 1003);
  const std::vector<float> tail = Values(range, 5, 1000, 3);
  EXPECT_EQ(tail, std::vector<float>(whole.begin() + 1000, whole.end()));
  const std::vector<float> middle = Values(range, 5, 504, 96);
  EXPECT_EQ(middle, std::vector<float>(whole.begin() + 504, whole.begin() + 600));
  EXPECT_NE(Values(range, 6, 0, 1003), whole);
}

}  // namespace
}  // namespace ltx::random_model
