#include "server/governor/least_squares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace ltx::server {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Least squares over the unknowns in `free` alone, by the normal equations: the unknowns are few
/// and scaled alike. A pivot near zero leaves its unknown at zero.
Vector Solve(const std::vector<Vector>& normal, const Vector& right,
             const std::vector<bool>& free) {
  std::vector<size_t> index;
  for (size_t i = 0; i < free.size(); ++i) {
    if (free[i]) index.push_back(i);
  }
  const size_t n = index.size();
  std::vector<Vector> m(n, Vector(n + 1));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) m[i][j] = normal[index[i]][index[j]];
    m[i][n] = right[index[i]];
  }
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(m[row][column]) > std::abs(m[pivot][column])) pivot = row;
    }
    std::swap(m[column], m[pivot]);
    // The columns have unit length, so that this is relative.
    if (std::abs(m[column][column]) < 1e-10) {
      for (size_t row = 0; row < n; ++row) m[row][column] = 0;
      m[column][column] = 1;
      m[column][n] = 0;
      for (size_t j = column + 1; j < n; ++j) m[column][j] = 0;
    }
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = m[row][column] / m[column][column];
      for (size_t j = column; j <= n; ++j) m[row][j] -= factor * m[column][j];
    }
  }
  Vector x(free.size());
  for (size_t i = 0; i < n; ++i) x[index[i]] = m[i][n] / m[i][i];
  return x;
}

/// The unknowns of columns of unit length, or of length zero.
Vector SolveNonNegative(const std::vector<Vector>& normal, const Vector& right) {
  const size_t n = right.size();
  Vector x(n);
  std::vector<bool> free(n, false);
  // Each round frees one unknown or ends; a bound keeps rounding from going round in circles.
  for (size_t round = 0; round < 4 * n; ++round) {
    size_t best = n;
    double best_gradient = 1e-12;
    for (size_t i = 0; i < n; ++i) {
      if (free[i] || normal[i][i] == 0) continue;
      const double gradient = right[i] - Dot(normal[i], x);
      if (gradient > best_gradient) {
        best_gradient = gradient;
        best = i;
      }
    }
    if (best == n) break;
    free[best] = true;
    while (true) {
      const Vector target = Solve(normal, right, free);
      double step = 1;
      for (size_t i = 0; i < n; ++i) {
        if (free[i] && target[i] < 0) step = std::min(step, x[i] / (x[i] - target[i]));
      }
      for (size_t i = 0; i < n; ++i) {
        if (free[i]) x[i] += step * (target[i] - x[i]);
      }
      if (step >= 1) break;
      for (size_t i = 0; i < n; ++i) {
        if (free[i] && target[i] < 0 && x[i] <= 1e-15) {
          free[i] = false;
          x[i] = 0;
        }
      }
    }
  }
  return x;
}

}  // namespace

std::vector<double> NonNegativeLeastSquares(const std::vector<Vector>& rows, const Vector& values) {
  const size_t n = rows.front().size();
  // Columns of unit length: the terms have units of their own.
  Vector length(n);
  for (const Vector& row : rows) {
    for (size_t i = 0; i < n; ++i) length[i] += row[i] * row[i];
  }
  for (double& l : length) l = std::sqrt(l);
  std::vector<Vector> normal(n, Vector(n));
  Vector right(n);
  Vector scaled(n);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < n; ++i) scaled[i] = length[i] > 0 ? rows[r][i] / length[i] : 0;
    for (size_t i = 0; i < n; ++i) {
      right[i] += scaled[i] * values[r];
      for (size_t j = 0; j < n; ++j) normal[i][j] += scaled[i] * scaled[j];
    }
  }
  Vector x = SolveNonNegative(normal, right);
  for (size_t i = 0; i < n; ++i) x[i] = length[i] > 0 ? std::max(x[i], 0.0) / length[i] : 0;
  return x;
}

std::vector<double> NonNegativeLeastAbsolutes(const std::vector<Vector>& rows, const Vector& values,
                                              double smallest) {
  // Each turn brings a residual about half way to where it ends.
  constexpr int kTurns = 12;
  Vector x = NonNegativeLeastSquares(rows, values);
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<Vector> weighted = rows;
    Vector targets = values;
    for (size_t r = 0; r < rows.size(); ++r) {
      const double residual = std::abs(values[r] - Dot(rows[r], x));
      const double weight = 1 / std::sqrt(std::max(residual, smallest));
      for (double& term : weighted[r]) term *= weight;
      targets[r] *= weight;
    }
    x = NonNegativeLeastSquares(weighted, targets);
  }
  return x;
}

}  // namespace ltx::server
