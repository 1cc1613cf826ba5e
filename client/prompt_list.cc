#include "client/prompt_list.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ltx::client {

absl::StatusOr<std::vector<std::string>> ReadPromptList(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> prompts;
  std::string line;
  while (std::getline(file, line)) {
    const absl::string_view prompt = absl::StripAsciiWhitespace(line);
    if (!prompt.empty()) prompts.emplace_back(prompt);
  }
  if (!file.eof()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  if (prompts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no prompt: one a line"));
  }
  return prompts;
}

}  // namespace ltx::client
