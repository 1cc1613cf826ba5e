#include "server/tenant.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"

namespace ltx::server {
namespace {

constexpr size_t kMaxTenantBytes = 64;
constexpr absl::string_view kLegal = "up to 64 letters, digits and \"._-\"";

}  // namespace

absl::StatusOr<std::string> ParseTenant(absl::string_view value) {
  if (value.empty()) return std::string(kDefaultTenant);
  const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (plain && value.size() <= kMaxTenantBytes) return std::string(value);
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat("metadata ", kTenantKey, ": a value of ",
                                              value.size(), " bytes is not ", kLegal)),
      {std::string(pipeline::kReasonUnknownValue), kTenantKey,
       absl::StrCat("of ", value.size(), " bytes"), std::string(kLegal)});
}

}  // namespace ltx::server
