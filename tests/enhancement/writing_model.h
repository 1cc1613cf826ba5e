#ifndef LTX_TESTS_ENHANCEMENT_WRITING_MODEL_H_
#define LTX_TESTS_ENHANCEMENT_WRITING_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::testing {

/// Writes a model set that can enhance prompts into a fresh folder of the test and returns its
/// path: ltx-tiny as a 2.3 model, whose text tower is a Gemma 3 with random weights and one token a
/// byte. What it writes is nonsense, what the clip shows therefore too.
absl::StatusOr<std::string> WriteWritingModel(absl::string_view name);

}  // namespace ltx::testing

#endif  // LTX_TESTS_ENHANCEMENT_WRITING_MODEL_H_
