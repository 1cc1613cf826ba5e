#ifndef LTX_SERVER_SCHEDULER_JOB_CLASS_H_
#define LTX_SERVER_SCHEDULER_JOB_CLASS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ltx::server {

/// Which jobs go first. A waiting job of a higher class makes a running one of a lower class yield
/// at its next unit.
enum class JobClass : uint8_t {
  /// Somebody waits for the clip.
  kInteractive,
  /// Whenever there is time.
  kBatch,
};
inline constexpr int kJobClassCount = 2;

/// "interactive" or "batch".
constexpr absl::string_view JobClassName(JobClass job_class) {
  return job_class == JobClass::kInteractive ? "interactive" : "batch";
}

/// Whether `a` goes before `b` whatever else holds.
constexpr bool IsAbove(JobClass a, JobClass b) { return a < b; }

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_JOB_CLASS_H_
