#ifndef LTX_ENGINE_CHECKPOINT_STORED_FORM_H_
#define LTX_ENGINE_CHECKPOINT_STORED_FORM_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/weight_set.h"

namespace ltx::checkpoint {

/// How the numbers of a tensor are stored. Read from the header alone: names, dtypes and the small
/// marker tensors beside a weight.
enum class StoredForm {
  /// F32, F16, BF16 or F64 elements.
  kPlain,
  /// FP8 codes beside a scale named after the whole tensor.
  kScaledFp8,
  /// FP8 codes that are the values themselves.
  kUnscaledFp8,
  /// Packed E2M1 with tiled E4M3 block scales, element 2j in the high nibble.
  kNvfp4,
  /// Packed E2M1 of torchao, element 2j in the low nibble, behind a `.torchao_nvfp4` marker.
  kTorchaoNvfp4,
  /// The same spread over `._weight_qdata` and its siblings; there is no `.weight` at all.
  kTorchaoFlattened,
  /// I8 codes beside per-tensor or per-row scales.
  kInt8,
  /// I8 codes of columns that were rotated group by group.
  kInt8ConvRot,
};

/// What the form is called in messages.
absl::string_view StoredFormName(StoredForm form);

/// The form of the tensor `name`. A marker beside a `.weight` wins over what the dtypes suggest.
/// NOT_FOUND if there is nothing stored under that name in any form, INVALID_ARGUMENT for a
/// contradiction (half a pair of scales, a malformed marker, an integer tensor without scales),
/// UNIMPLEMENTED for a marker that names a format outside the list above. All name file and tensor.
absl::StatusOr<StoredForm> DetectStoredForm(const WeightSet& weights, absl::string_view name);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_STORED_FORM_H_
