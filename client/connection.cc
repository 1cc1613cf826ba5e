#include "client/connection.h"

#include "kernels/status_macros.h"

namespace ltx::client {

void AddConnectionFlags(CLI::App* app, Connection* connection) {
  ChannelOptions* const channel = &connection->channel;
  app->add_option("--server", connection->server, "HOST:PORT of the server")
      ->capture_default_str()
      ->envname("LTX_SERVER");
  app->add_flag("--tls", channel->tls, "Use TLS and trust the system's authorities")
      ->envname("LTX_TLS");
  app->add_option("--tls-ca", channel->tls_ca,
                  "PEM file of the authority that signed the server's certificate")
      ->envname("LTX_TLS_CA");
  app->add_option("--tls-cert", channel->tls_cert, "PEM file of this client's certificate")
      ->envname("LTX_TLS_CERT");
  app->add_option("--tls-key", channel->tls_key, "PEM file of this client's key")
      ->envname("LTX_TLS_KEY");
  app->add_option("--token-file", channel->token_file,
                  "File with the bearer token, in its first line")
      ->envname("LTX_TOKEN_FILE");
  app->add_flag("--allow-insecure-token", channel->allow_insecure_token,
                "Send the token without TLS, also to another machine");
}

absl::StatusOr<std::unique_ptr<VideoClient>> Connect(const Connection& connection) {
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                       OpenChannel(connection.server, connection.channel));
  return VideoClient::Over(channel);
}

}  // namespace ltx::client
