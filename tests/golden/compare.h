#ifndef LTX_TESTS_GOLDEN_COMPARE_H_
#define LTX_TESTS_GOLDEN_COMPARE_H_

#include <string>
#include <vector>

#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// One output held against the reference.
struct OutputComparison {
  std::string name;
  bool passed = false;
  /// Has no bound that could fail: measured for information.
  bool information_only = false;
  /// ||ours - ref|| / ||ref||; 0 if both norms are 0.
  double rel_l2 = 0.0;
  double max_abs = 0.0;
  /// The larger of the two errors in units of its bound; orders outputs by how close to failing.
  double severity = 0.0;
  /// Why it failed, with errors and bounds.
  std::string message;
};

/// Compares every output of the case. An output passes if it is there, has the reference's shape
/// and dtype class (float or integer) and only finite values, and if both errors lie within the
/// case's tolerance. Without an entry, integers must be equal and floats within rel_l2 1e-5. A
/// reference of norm 0 is judged by max_abs alone (0 if there is no such bound). An entry
/// {"ignore": true}, or one with only bounds of 1e9 and more, never fails. Outputs computed in bf16
/// for a case in f32 (GoldenOutputs::JudgeAsBFloat16) are judged by the wider of the two bounds.
/// INVALID_ARGUMENT for a malformed tolerance, or a case without any output.
absl::StatusOr<std::vector<OutputComparison>> CompareOutputs(const GoldenCase& golden,
                                                             const GoldenOutputs& ours);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_COMPARE_H_
