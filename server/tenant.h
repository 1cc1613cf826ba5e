#ifndef LTX_SERVER_TENANT_H_
#define LTX_SERVER_TENANT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::server {

/// Metadata key that names who shares the device with whom.
inline constexpr char kTenantKey[] = "x-ltx-tenant";
/// Of calls that name nobody.
inline constexpr char kDefaultTenant[] = "default";

/// The tenant that `value` names, kDefaultTenant for an empty one. INVALID_ARGUMENT unless it is up
/// to 64 letters, digits and "._-": it ends up in logs and metrics.
absl::StatusOr<std::string> ParseTenant(absl::string_view value);

}  // namespace ltx::server

#endif  // LTX_SERVER_TENANT_H_
