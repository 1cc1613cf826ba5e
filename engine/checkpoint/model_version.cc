#include "engine/checkpoint/model_version.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace ltx::checkpoint {

ModelVersion ParseModelVersion(absl::string_view text) {
  ModelVersion version;
  for (const absl::string_view part : absl::StrSplit(text, '.')) {
    int64_t number = 0;
    // SimpleAtoi alone would take signs and spaces.
    if (part.empty() || !std::all_of(part.begin(), part.end(), absl::ascii_isdigit) ||
        !absl::SimpleAtoi(part, &number)) {
      break;
    }
    version.push_back(number);
  }
  return version;
}

ModelVersion ParseModelVersionForDefaults(absl::string_view text) {
  return ParseModelVersion(absl::StrReplaceAll(text, {{"-", "."}}));
}

}  // namespace ltx::checkpoint
