#ifndef LTX_ENGINE_SAMPLING_INCOMPLETE_BETA_H_
#define LTX_ENGINE_SAMPLING_INCOMPLETE_BETA_H_

namespace ltx::sampling {

/// The regularised incomplete beta function I_x(a, b), the distribution function of a beta
/// distribution, for a, b > 0 and x in [0, 1]; about 1e-14 relative (DLMF 8.17.22).
///
/// Written here because the one schedule that needs it does not justify a dependency: Debian's
/// Boost headers take 138 MB.
double RegularizedIncompleteBeta(double x, double a, double b);

/// Its inverse: the x with I_x(a, b) = probability, for probability in [0, 1]. Rises with the
/// probability; exact at 0 and 1, and at the median of a symmetric distribution other
/// than the arcsine distribution (a = b = 1/2), whose closed form rounds there.
double InverseRegularizedIncompleteBeta(double probability, double a, double b);

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_INCOMPLETE_BETA_H_
