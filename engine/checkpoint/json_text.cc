#include "engine/checkpoint/json_text.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ltx::checkpoint {
namespace {

/// A checkpoint's config nests six deep; this leaves room without risking the stack.
constexpr int kMaxDepth = 64;

bool TooDeep(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view subject) {
  if (TooDeep(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, ": JSON is nested deeper than ", kMaxDepth, " levels"));
  }
  // keys[d]: those seen so far in the object that is open at depth d.
  std::vector<std::set<std::string>> keys(kMaxDepth + 2);
  std::string repeated;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (depth < 0 || depth > kMaxDepth) return true;
    if (event == nlohmann::json::parse_event_t::object_start) keys[depth + 1].clear();
    if (event == nlohmann::json::parse_event_t::key &&
        !keys[depth].insert(parsed.get_ref<const std::string&>()).second && repeated.empty()) {
      repeated = parsed.get_ref<const std::string&>();
    }
    return true;
  };
  nlohmann::json json = nlohmann::json::parse(text.data(), text.data() + text.size(), watch,
                                              /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(subject, ": not JSON"));
  }
  if (!repeated.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        subject, ": key \"", absl::Utf8SafeCHexEscape(repeated), "\" stands twice in one object"));
  }
  return json;
}

absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text, absl::string_view subject) {
  absl::StatusOr<nlohmann::json> json = ParseJson(text, subject);
  if (json.ok() && !json->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, ": is a JSON ", json->type_name(), ", legal is an object"));
  }
  return json;
}

}  // namespace ltx::checkpoint
