#ifndef LTX_CLIENT_FAILURE_H_
#define LTX_CLIENT_FAILURE_H_

#include "absl/status/status.h"

namespace ltx::client {

/// Exit status of a program that Ctrl-C ended, as shells have it.
inline constexpr int kInterruptedExit = 130;

/// Writes "ltx: CODE: message" as one line to stderr and returns the exit status: 1, or
/// kInterruptedExit for CANCELLED.
int Fail(const absl::Status& status);

}  // namespace ltx::client

#endif  // LTX_CLIENT_FAILURE_H_
