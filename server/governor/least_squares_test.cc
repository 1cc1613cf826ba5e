#include "server/governor/least_squares.h"

#include <cmath>

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

std::vector<double> Parabola(double t) { return {1, 0, t, t * t, 0, 0}; }

TEST(NonNegativeLeastSquaresTest, FindsWhatIsThere) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 1; i <= 5; ++i) {
    const double t = i;
    rows.push_back(Parabola(t));
    values.push_back(2 + 3 * t + 0.5 * t * t);
  }
  const std::vector<double> x = NonNegativeLeastSquares(rows, values);
  EXPECT_NEAR(x[0], 2, 1e-6);
  EXPECT_NEAR(x[2], 3, 1e-6);
  EXPECT_NEAR(x[3], 0.5, 1e-6);
  EXPECT_EQ(x[1], 0);
}

TEST(NonNegativeLeastSquaresTest, NoCoefficientIsNegative) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  // The best parabola through these bends down.
  for (const double t : {1.0, 2.0, 3.0, 4.0}) {
    rows.push_back(Parabola(t));
    values.push_back(std::sqrt(t));
  }
  const std::vector<double> x = NonNegativeLeastSquares(rows, values);
  for (const double value : x) EXPECT_GE(value, 0);
  EXPECT_GT(x[0] + x[2], 0);
}

TEST(NonNegativeLeastAbsolutesTest, AnOutlierMovesNothing) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 1; i <= 9; ++i) {
    rows.push_back({1, static_cast<double>(i)});
    values.push_back(2 + 3 * i + (i == 4 ? 100 : 0));
  }
  const std::vector<double> x = NonNegativeLeastAbsolutes(rows, values, 1e-4);
  EXPECT_NEAR(x[0], 2, 1e-2);
  EXPECT_NEAR(x[1], 3, 1e-2);
  // Least squares alone would miss the first by several units.
  EXPECT_GT(NonNegativeLeastSquares(rows, values)[0], 7);
}

}  // namespace
}  // namespace ltx::server
