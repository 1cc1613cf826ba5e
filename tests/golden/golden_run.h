#ifndef LTX_TESTS_GOLDEN_GOLDEN_RUN_H_
#define LTX_TESTS_GOLDEN_GOLDEN_RUN_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// Which cases to run.
struct RunOptions {
  /// Files and folders (searched for *.safetensors at any depth).
  std::vector<std::string> paths;
  /// Whole dotted component names, or a trailing ".*" for all below a name. Empty: every case.
  std::vector<std::string> only;
};

struct RunSummary {
  int passed = 0;
  int failed = 0;
  /// Files that hold weights and no case.
  int model_files = 0;
  /// Cases that `only` left out.
  int filtered = 0;
};

/// Runs the cases one after the other and writes one line for each to `out`: verdict, component,
/// file, worst rel_l2 and max_abs, and the output closest to its bound; below a failure, each
/// output that failed. A component without a runner, a file that is no well-formed case and a
/// runner's error are failures. INVALID_ARGUMENT if a path does not exist.
absl::StatusOr<RunSummary> RunCases(const RunOptions& options, const ComponentRegistry& registry,
                                    const GoldenContext& context, std::ostream& out);

/// Component names from a text: one a line, "#" starts a comment.
std::vector<std::string> ParseComponentList(absl::string_view text);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_GOLDEN_RUN_H_
