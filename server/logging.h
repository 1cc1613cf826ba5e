#ifndef LTX_SERVER_LOGGING_H_
#define LTX_SERVER_LOGGING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ltx::server {

/// Sends the process's log to stderr at `level` ("trace" .. "error") as lines of text or JSON
/// objects ("text", "json").
void ConfigureLogging(const std::string& level, const std::string& format);

/// While it lives, what this thread logs is of this job: "job ID: " in front of a line of text, a
/// key "job" in a JSON object. The id must outlive it.
class LogJob {
 public:
  explicit LogJob(absl::string_view job_id);
  ~LogJob();
  LogJob(const LogJob&) = delete;
  LogJob& operator=(const LogJob&) = delete;

 private:
  const absl::string_view outer_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_LOGGING_H_
