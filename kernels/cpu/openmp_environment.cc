#include "kernels/cpu/openmp_environment.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ltx::cpu {
namespace {

constexpr char kWaitPolicy[] = "OMP_WAIT_POLICY";
constexpr char kSpinCount[] = "GOMP_SPINCOUNT";
constexpr char kThisProgram[] = "/proc/self/exe";

}  // namespace

absl::Status UsePassiveOpenMpThreads(char** argv) {
  // The variable that this sets also ends the recursion.
  if (std::getenv(kWaitPolicy) != nullptr || std::getenv(kSpinCount) != nullptr) {
    return absl::OkStatus();
  }
  if (setenv(kWaitPolicy, "passive", 1) != 0) {
    return absl::UnknownError(absl::StrCat("cannot set ", kWaitPolicy, ": ", strerror(errno)));
  }
  // By its own path if that is still there, so that the process keeps its name in ps and top.
  char path[PATH_MAX + 1] = {};
  if (readlink(kThisProgram, path, PATH_MAX) > 0) execv(path, argv);
  execv(kThisProgram, argv);
  return absl::UnknownError(absl::StrCat("cannot restart with ", kWaitPolicy, "=passive: ",
                                         strerror(errno), "; on a busy machine set it yourself"));
}

}  // namespace ltx::cpu
