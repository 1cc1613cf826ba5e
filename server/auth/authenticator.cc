#include "server/auth/authenticator.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/reasons.h"
#include "server/tenant.h"

namespace ltx::server {
namespace {

/// The key's value in the call's metadata; empty if it is not there.
absl::string_view Metadata(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

absl::Status Refused(absl::string_view message, absl::string_view reason) {
  return pipeline::WithDetail(
      absl::UnauthenticatedError(message),
      {std::string(reason), "", "", "\"Bearer TOKEN\" with a token of the server's file"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Create(const Options& options) {
  std::unique_ptr<Authenticator> authenticator(new Authenticator(options));
  if (!options.token_file.empty()) {
    LTX_ASSIGN_OR_RETURN(authenticator->tokens_, TokenFile::Open(options.token_file));
  }
  return authenticator;
}

absl::StatusOr<std::string> Authenticator::TenantOfToken(
    const grpc::CallbackServerContext& context) const {
  constexpr absl::string_view kScheme = "bearer ";
  const absl::string_view value = Metadata(context, "authorization");
  if (!absl::StartsWithIgnoreCase(value, kScheme)) {
    return Refused("this server needs a bearer token", kReasonTokenMissing);
  }
  const absl::string_view token = absl::StripAsciiWhitespace(value.substr(kScheme.size()));
  std::optional<std::string> tenant = tokens_->Read()->Find(token);
  if (!tenant.has_value()) return Refused("the bearer token is not known", kReasonTokenUnknown);
  return *std::move(tenant);
}

absl::StatusOr<std::string> Authenticator::Authenticate(
    const grpc::CallbackServerContext& context) const {
  LTX_ASSIGN_OR_RETURN(const std::string named, ParseTenant(Metadata(context, kTenantKey)));
  std::string tenant;
  if (tokens_ != nullptr) {
    LTX_ASSIGN_OR_RETURN(tenant, TenantOfToken(context));
  } else if (by_certificate_) {
    const std::vector<grpc::string_ref> names =
        context.auth_context()->FindPropertyValues("x509_common_name");
    const absl::string_view name =
        names.empty() ? absl::string_view() : absl::string_view(names[0].data(), names[0].size());
    LTX_ASSIGN_OR_RETURN(tenant, ParseTenant(name));
  } else {
    return named;
  }
  if (named == kDefaultTenant || named == tenant) return tenant;
  return pipeline::WithDetail(
      absl::PermissionDeniedError(
          absl::StrCat("the call names tenant ", named, ", but its credentials are of ", tenant)),
      {std::string(kReasonTenantMismatch), kTenantKey, named, tenant});
}

}  // namespace ltx::server
