#ifndef LTX_SERVER_AUTH_LISTEN_CREDENTIALS_H_
#define LTX_SERVER_AUTH_LISTEN_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::server {

/// Files, PEM, of the server's end of TLS.
struct TlsFiles {
  /// The server's certificate chain and its key; both empty: no TLS.
  std::string certificate;
  std::string key;
  /// Authorities whose certificates clients must show; empty: none is asked for.
  std::string client_ca;
};

/// What the port speaks. NOT_FOUND for a file that cannot be read, INVALID_ARGUMENT for one without
/// what it should hold, for a key that does not belong to the certificate, and for half of a pair.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(const TlsFiles& files);

/// Whether HOST:PORT can be reached from this machine only.
bool IsLoopback(absl::string_view listen);

}  // namespace ltx::server

#endif  // LTX_SERVER_AUTH_LISTEN_CREDENTIALS_H_
