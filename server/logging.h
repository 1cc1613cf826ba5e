#ifndef LTX_SERVER_LOGGING_H_
#define LTX_SERVER_LOGGING_H_

#include <string>

namespace ltx::server {

/// Sends the process's log to stderr at `level` ("trace" .. "error") as lines of text or JSON
/// objects ("text", "json").
void ConfigureLogging(const std::string& level, const std::string& format);

}  // namespace ltx::server

#endif  // LTX_SERVER_LOGGING_H_
