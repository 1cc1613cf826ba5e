#ifndef LTX_SERVER_SERVER_H_
#define LTX_SERVER_SERVER_H_

#include "absl/status/status.h"
#include "server/config.h"

namespace ltx::server {

/// Loads the model, serves until SIGTERM or SIGINT, drains and returns. Once it serves it prints
/// "listening on HOST:PORT" to stdout, with the port that was bound.
/// NOT_FOUND / INVALID_ARGUMENT for the model, FAILED_PRECONDITION for the device or an address
/// that is taken.
absl::Status RunServer(const ServerConfig& config);

}  // namespace ltx::server

#endif  // LTX_SERVER_SERVER_H_
