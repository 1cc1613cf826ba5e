#ifndef LTX_TESTS_END_TO_END_LIMIT_H_
#define LTX_TESTS_END_TO_END_LIMIT_H_

#include "absl/time/time.h"

namespace ltx::testing {

/// How long tests wait for a program, a call or a clip before they fail: far above the seconds that
/// the longest takes on a busy machine; programs with a sanitizer in them are that much slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr absl::Duration kLimit = absl::Minutes(15);
#else
inline constexpr absl::Duration kLimit = absl::Minutes(2);
#endif

}  // namespace ltx::testing

#endif  // LTX_TESTS_END_TO_END_LIMIT_H_
