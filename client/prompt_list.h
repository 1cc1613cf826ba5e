#ifndef LTX_CLIENT_PROMPT_LIST_H_
#define LTX_CLIENT_PROMPT_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ltx::client {

/// The prompts of a text file, one a line; lines of white space alone are none. Line ends of
/// Windows are taken. NOT_FOUND if the file cannot be read, INVALID_ARGUMENT if it holds no prompt.
absl::StatusOr<std::vector<std::string>> ReadPromptList(const std::string& path);

}  // namespace ltx::client

#endif  // LTX_CLIENT_PROMPT_LIST_H_
