#ifndef LTX_SERVER_GOVERNOR_LEAST_SQUARES_H_
#define LTX_SERVER_GOVERNOR_LEAST_SQUARES_H_

#include <vector>

namespace ltx::server {

/// argmin |A x - y| over x >= 0 (Lawson and Hanson, "Solving Least Squares Problems", chapter 23),
/// on a handful of unknowns. `rows`, those of A, are of one length and at least one.
std::vector<double> NonNegativeLeastSquares(const std::vector<std::vector<double>>& rows,
                                            const std::vector<double>& values);

/// argmin sum |A x - y| over x >= 0, by least squares with weights of 1 / |residual|, at most 1 /
/// `smallest`: an outlier among the values moves nothing, as with a median.
std::vector<double> NonNegativeLeastAbsolutes(const std::vector<std::vector<double>>& rows,
                                              const std::vector<double>& values, double smallest);

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_LEAST_SQUARES_H_
