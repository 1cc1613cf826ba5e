#ifndef LTX_ENGINE_CHECKPOINT_MODEL_VERSION_H_
#define LTX_ENGINE_CHECKPOINT_MODEL_VERSION_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace ltx::checkpoint {

/// The leading integers of a version, compared like words in a dictionary: {2, 5} < {2, 5, 0}. An
/// unreadable version is empty, and below all others.
using ModelVersion = std::vector<int64_t>;

/// Splits at dots and stops at the first part that is no integer: "2.3.rc1" -> {2, 3}, "2.4-rc2" ->
/// {2}. What the text encoder check uses.
ModelVersion ParseModelVersion(absl::string_view text);

/// The same with "-" read as ".": "2.4-rc2" -> {2, 4}. What the defaults of pipelines use.
ModelVersion ParseModelVersionForDefaults(absl::string_view text);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_MODEL_VERSION_H_
