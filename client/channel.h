#ifndef LTX_CLIENT_CHANNEL_H_
#define LTX_CLIENT_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ltx::client {

/// How to reach a server and be let in.
struct ChannelOptions {
  absl::Duration timeout = absl::Seconds(10);
  /// TLS is used if any of these is set, or `tls`. PEM files; without a CA those of the system
  /// count.
  bool tls = false;
  std::string tls_ca;
  /// This client's own certificate and key, for servers that ask for one; both or none.
  std::string tls_cert;
  std::string tls_key;
  /// File with the bearer token, its first line; empty: none is sent.
  std::string token_file;
  /// Send the token without TLS to a server that is not on this machine.
  bool allow_insecure_token = false;
};

/// A connected channel that sends the token with every call. NOT_FOUND for a file that cannot be
/// read, INVALID_ARGUMENT for options that do not fit together or a token that would go over the
/// network in the clear, UNAVAILABLE if nobody answers in time (which is also what an untrusted
/// certificate looks like).
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address,
                                                           const ChannelOptions& options);

}  // namespace ltx::client

#endif  // LTX_CLIENT_CHANNEL_H_
