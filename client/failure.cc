#include "client/failure.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace ltx::client {

int Fail(const absl::Status& status) {
  std::string message(status.message());
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "ltx: %s: %s\n", absl::StatusCodeToString(status.code()).c_str(),
               message.c_str());
  return absl::IsCancelled(status) ? kInterruptedExit : 1;
}

}  // namespace ltx::client
