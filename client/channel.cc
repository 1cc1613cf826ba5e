#include "client/channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"

namespace ltx::client {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return content.str();
}

/// Adds the token to what a call sends first. Call credentials would do the same, but gRPC attaches
/// them to encrypted channels only.
class TokenInterceptor final : public Interceptor {
 public:
  explicit TokenInterceptor(const std::string* value) : value_(value) {}
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert({"authorization", *value_});
    }
    methods->Proceed();
  }

 private:
  const std::string* const value_;
};

class TokenInterceptorFactory final : public ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptorFactory(const std::string& token) : value_("Bearer " + token) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    return std::make_unique<TokenInterceptor>(&value_).release();
  }

 private:
  const std::string value_;
};

bool UsesTls(const ChannelOptions& options) {
  return options.tls || !options.tls_ca.empty() || !options.tls_cert.empty() ||
         !options.tls_key.empty();
}

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.") ||
         absl::StartsWith(address, "unix:");
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const ChannelOptions& options) {
  if (!UsesTls(options)) return grpc::InsecureChannelCredentials();
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError("tls-cert and tls-key belong together: give both or none");
  }
  grpc::SslCredentialsOptions ssl;
  LTX_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadFile(options.tls_ca));
  LTX_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadFile(options.tls_cert));
  LTX_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadFile(options.tls_key));
  return grpc::SslCredentials(ssl);
}

absl::StatusOr<std::string> ReadToken(const std::string& address, const ChannelOptions& options) {
  LTX_ASSIGN_OR_RETURN(const std::string content, ReadFile(options.token_file));
  std::string token(absl::StripAsciiWhitespace(content.substr(0, content.find('\n'))));
  if (token.empty() && !options.token_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.token_file, " has no token in its first line"));
  }
  if (!token.empty() && !UsesTls(options) && !IsLoopback(address) &&
      !options.allow_insecure_token) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token would go to ", address,
                     " in the clear: use TLS, or say --allow-insecure-token"));
  }
  return token;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address,
                                                           const ChannelOptions& options) {
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                       Credentials(options));
  LTX_ASSIGN_OR_RETURN(const std::string token, ReadToken(address, options));
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> interceptors;
  if (!token.empty()) interceptors.push_back(std::make_unique<TokenInterceptorFactory>(token));
  const std::shared_ptr<grpc::Channel> channel =
      grpc::experimental::CreateCustomChannelWithInterceptors(
          address, credentials, grpc::ChannelArguments(), std::move(interceptors));
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + options.timeout))) {
    return absl::UnavailableError(absl::StrCat(
        "no server answers at ", address, " within ", absl::FormatDuration(options.timeout),
        UsesTls(options) ? ", or its certificate is not trusted" : ""));
  }
  return channel;
}

}  // namespace ltx::client
