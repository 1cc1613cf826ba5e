#include "engine/sampling/incomplete_beta.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ltx::sampling {
namespace {

TEST(IncompleteBetaTest, ClosedForms) {
  for (const double x : {0.0, 1e-9, 0.01, 0.3, 0.5, 0.8, 0.999, 1.0}) {
    EXPECT_NEAR(RegularizedIncompleteBeta(x, 1.0, 1.0), x, 1e-14);
    EXPECT_NEAR(RegularizedIncompleteBeta(x, 3.0, 1.0), x * x * x, 1e-14);
    EXPECT_NEAR(RegularizedIncompleteBeta(x, 1.0, 2.5), 1.0 - std::pow(1.0 - x, 2.5), 1e-14);
    // The arcsine distribution.
    EXPECT_NEAR(RegularizedIncompleteBeta(x, 0.5, 0.5),
                2.0 / std::acos(-1.0) * std::asin(std::sqrt(x)), 1e-13);
  }
}

TEST(IncompleteBetaTest, InverseMatchesReferenceValues) {
  // scipy 1.17.1, scipy.stats.beta.ppf.
  struct Row {
    double probability, a, b, x;
  };
  for (const Row& row :
       {Row{0.875, 0.6, 0.6, 0.942843636377586}, Row{0.5, 0.6, 0.6, 0.5000000000000001},
        Row{0.03333333333333333, 0.6, 0.6, 0.006397135703290159},
        Row{0.25, 0.8, 0.4, 0.41257908233628127}, Row{0.75, 0.8, 0.4, 0.9582986874546072},
        Row{0.1, 2.0, 5.0, 0.09259525891312873}, Row{0.999, 0.6, 0.6, 0.9999814412614826},
        Row{1e-05, 0.6, 0.6, 8.614243295846627e-09}, Row{0.4, 30.0, 9.0, 0.7565099460258997}}) {
    EXPECT_NEAR(InverseRegularizedIncompleteBeta(row.probability, row.a, row.b), row.x,
                1e-12 * row.x)
        << row.probability << " " << row.a << " " << row.b;
  }
}

TEST(IncompleteBetaTest, InverseUndoesTheFunction) {
  for (const double a : {0.3, 0.6, 1.0, 4.0, 30.0}) {
    for (const double b : {0.4, 0.6, 1.0, 9.0}) {
      double before = -1.0;
      for (const double p : {0.0, 1e-6, 0.05, 0.5, 0.9, 0.9999, 1.0}) {
        const double x = InverseRegularizedIncompleteBeta(p, a, b);
        // The doubles next to it lie on both sides, and near 1 they may lie far apart.
        EXPECT_GE(RegularizedIncompleteBeta(x, a, b), p - 1e-13);
        EXPECT_LE(RegularizedIncompleteBeta(std::nextafter(x, -1.0), a, b), p + 1e-13);
        EXPECT_GT(x, before);
        before = x;
      }
      EXPECT_EQ(InverseRegularizedIncompleteBeta(0.0, a, b), 0.0);
      EXPECT_EQ(InverseRegularizedIncompleteBeta(1.0, a, b), 1.0);
    }
  }
}

}  // namespace
}  // namespace ltx::sampling
