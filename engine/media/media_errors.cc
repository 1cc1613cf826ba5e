#include "engine/media/media_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/pipeline/error_details.h"

namespace ltx::media {

absl::Status FormatError(absl::string_view name, absl::string_view what) {
  return pipeline::WithDetail(absl::InvalidArgumentError(absl::StrCat(name, ": ", what)),
                              {std::string(kReasonMediaFormat), "data", std::string(name), ""});
}

absl::Status LimitError(absl::string_view name, absl::string_view quantity, double value,
                        double limit) {
  const std::string given = absl::StrFormat("%.15g %s", value, quantity);
  const std::string legal = absl::StrFormat("at most %.15g %s", limit, quantity);
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(name, " has ", given, "; legal are ", legal)),
      {std::string(kReasonMediaLimit), "data", given, legal});
}

}  // namespace ltx::media
