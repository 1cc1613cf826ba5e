#ifndef LTX_ENGINE_CHECKPOINT_JSON_TEXT_H_
#define LTX_ENGINE_CHECKPOINT_JSON_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

/// Parses JSON of unknown origin: refuses nesting beyond 64 levels (later users recurse: printing,
/// copying, destruction) and an object that says one key twice. INVALID_ARGUMENT starts with
/// `subject`, which names the text: "file: what".
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view subject);

/// The same, and the value must be an object.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text, absl::string_view subject);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_JSON_TEXT_H_
