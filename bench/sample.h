#ifndef LTX_BENCH_SAMPLE_H_
#define LTX_BENCH_SAMPLE_H_

#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace ltx::bench {

/// The middle value (of an even count: the mean of the middle two); 0 of nothing.
double Median(absl::Span<const double> values);

/// The smallest value; 0 of nothing. On a machine with other work it is the steadier figure.
double Minimum(absl::Span<const double> values);

/// {"median": ..., "min": ..., "all": [...]}
nlohmann::json Summarize(absl::Span<const double> values);

}  // namespace ltx::bench

#endif  // LTX_BENCH_SAMPLE_H_
