#include "bench/random_file.h"

#include <cmath>

#include "engine/checkpoint/element_decode.h"
#include "gtest/gtest.h"

namespace ltx::bench {
namespace {

TEST(RandomFileTest, SpreadsFitTheLayer) {
  const RandomFile file({{"a.weight", {100, 300}},
                         {"b.weight", {100, 300}},
                         {"a.bias", {100}},
                         {"q_norm.weight", {500}}});
  EXPECT_EQ(file.tensor_bytes(), 2 * (2 * 30000 + 600));
  const auto moments = [&](const char* name) {
    const std::vector<float> values = checkpoint::DecodeFloats(file.entries().at(name));
    double sum = 0.0;
    double squares = 0.0;
    for (const float v : values) {
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    const double count = static_cast<double>(values.size());
    return std::make_pair(sum / count, std::sqrt(squares / count - sum / count * sum / count));
  };
  // Variance 1 / fan-in, to the nearest step.
  EXPECT_NEAR(moments("a.weight").second * std::sqrt(300.0), 1.0, 0.45);
  EXPECT_NEAR(moments("a.weight").first, 0.0, 0.01);
  EXPECT_NEAR(moments("q_norm.weight").first, 1.0, 0.02);
  EXPECT_LT(moments("a.bias").second, 0.1);
  EXPECT_NE(checkpoint::DecodeFloats(file.entries().at("a.weight")),
            checkpoint::DecodeFloats(file.entries().at("b.weight")));
}

}  // namespace
}  // namespace ltx::bench
