#ifndef LTX_SERVER_AUTH_AUTHENTICATOR_H_
#define LTX_SERVER_AUTH_AUTHENTICATOR_H_

#include <grpcpp/server_context.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/token_file.h"

namespace ltx::server {

/// Who calls. With a token file each call needs a bearer token, which stands for its tenant;
/// without one the client's certificate names the tenant, where certificates are asked for; else
/// the call may name itself, which is no more than bookkeeping. Thread-safe.
///
/// Each RPC of this project's services asks it first. The standard health service and reflection do
/// not: they tell whether the server is up, and what its interface is.
class Authenticator {
 public:
  struct Options {
    /// Empty: no tokens.
    std::string token_file;
    /// Certificates of clients were verified: their common name is the tenant.
    bool by_certificate = false;
  };

  /// Errors as TokenFile::Open().
  static absl::StatusOr<std::unique_ptr<Authenticator>> Create(const Options& options);

  /// The tenant of a call. UNAUTHENTICATED (TOKEN_MISSING, TOKEN_UNKNOWN), PERMISSION_DENIED
  /// (TENANT_MISMATCH) if the call names another tenant than its token's, INVALID_ARGUMENT for a
  /// name that is not legal.
  absl::StatusOr<std::string> Authenticate(const grpc::CallbackServerContext& context) const;

  /// Whether a tenant is proved, not only named: then tenants do not see each other's jobs.
  bool identifies() const { return by_certificate_ || tokens_ != nullptr; }

 private:
  explicit Authenticator(const Options& options) : by_certificate_(options.by_certificate) {}
  absl::StatusOr<std::string> TenantOfToken(const grpc::CallbackServerContext& context) const;

  const bool by_certificate_;
  /// Null without tokens.
  std::unique_ptr<TokenFile> tokens_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_AUTH_AUTHENTICATOR_H_
