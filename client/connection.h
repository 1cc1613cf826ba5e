#ifndef LTX_CLIENT_CONNECTION_H_
#define LTX_CLIENT_CONNECTION_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/channel.h"
#include "client/video_client.h"

namespace ltx::client {

/// Which server, and how to be let in: the flags that every verb with a server has.
struct Connection {
  std::string server = "localhost:50051";
  ChannelOptions channel;
};

/// Adds the flags to `app`, bound to `connection`; each may also come from the environment.
void AddConnectionFlags(CLI::App* app, Connection* connection);

/// Errors as OpenChannel().
absl::StatusOr<std::unique_ptr<VideoClient>> Connect(const Connection& connection);

}  // namespace ltx::client

#endif  // LTX_CLIENT_CONNECTION_H_
