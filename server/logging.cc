#include "server/logging.h"

#include <ctime>
#include <memory>
#include <utility>

#include "nlohmann/json.hpp"
#include "spdlog/formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// One JSON object a line: a message may hold quotes and line breaks from a request.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(message.time.time_since_epoch())
            .count();
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::json line = {
        {"time", static_cast<double>(micros) / 1e6},
        {"level", std::string(level.data(), level.size())},
        {"message", std::string(message.payload.data(), message.payload.size())}};
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
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  }
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace ltx::server
