#include "server/logging.h"

#include <ctime>
#include <memory>
#include <utility>

#include "nlohmann/json.hpp"
#include "spdlog/formatter.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// The job that this thread works for. Thread-local, since the libraries that log in between know
/// nothing of jobs.
thread_local absl::string_view current_job;  // NOLINT(*-avoid-non-const-global-variables)

/// %j in a pattern: "job ID: ", or nothing.
class JobFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    if (current_job.empty()) return;
    for (const absl::string_view part :
         {absl::string_view("job "), current_job, absl::string_view(": ")}) {
      out.append(part.data(), part.data() + part.size());
    }
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<JobFlag>();
  }
};

/// One JSON object a line: a message may hold quotes and line breaks from a request.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(message.time.time_since_epoch())
            .count();
    const auto level = spdlog::level::to_string_view(message.level);
    nlohmann::json line = {
        {"time", static_cast<double>(micros) / 1e6},
        {"level", std::string(level.data(), level.size())},
        {"message", std::string(message.payload.data(), message.payload.size())}};
    if (!current_job.empty()) line["job"] = std::string(current_job);
    // Invalid UTF-8 is replaced, not thrown.
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

void ConfigureLogging(const std::string& level, const std::string& format) {
  auto logger = std::make_shared<spdlog::logger>(
      "ltx", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  if (format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<JobFlag>('j').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %j%v");
    logger->set_formatter(std::move(formatter));
  }
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

LogJob::LogJob(absl::string_view job_id) : outer_(std::exchange(current_job, job_id)) {}

LogJob::~LogJob() { current_job = outer_; }

}  // namespace ltx::server
