// Times a request, from the prompt to the finished file on the client's side, and an external
// command in turns with it, and prints figures and ratio as JSON.
//
//   bazel run //bench:compare -- --start-server 'bazel-bin/server/ltx_server --listen 127.0.0.1:0'
//       --repeat 5 --other 'python reference.py' --other-pattern 'best ([0-9.]+)'

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "bench/command.h"
#include "bench/machine.h"
#include "bench/sample.h"
#include "bench/temporary_clip.h"
#include "client/video_client.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

using nlohmann::json;

/// How long a server may take to get ready (a full model reads tens of gigabytes), and to answer.
constexpr absl::Duration kStartTimeout = absl::Minutes(15);
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

struct Options {
  std::string server;
  std::string start_server;
  int starts = 1;
  int warmup = 1;
  int repeat = 5;
  std::string other;
  std::string other_name = "other";
  std::string other_pattern;
  v1::GenerateVideoRequest request;
};

/// What the requests of one run took.
struct Measured {
  std::vector<double> seconds;
  std::map<std::string, std::vector<double>> phases;
  /// Of the last request.
  v1::GenerationReport report;
};

std::string PhaseKey(v1::Phase phase) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Phase_Name(phase), "PHASE_"));
}

/// One request; adds its times to `measured` unless that is null.
absl::Status Request(client::VideoClient* client, const v1::GenerateVideoRequest& request,
                     const std::string& path, Measured* measured) {
  const absl::Time start = absl::Now();
  LTX_ASSIGN_OR_RETURN(v1::GenerationReport report, client->Generate(request, path, {}));
  if (measured == nullptr) return absl::OkStatus();
  measured->seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  for (const v1::PhaseTiming& timing : report.timings()) {
    measured->phases[PhaseKey(timing.phase())].push_back(timing.seconds());
  }
  measured->report = std::move(report);
  return absl::OkStatus();
}

json DescribeInput(const v1::GenerateVideoRequest& request,
                   const v1::EffectiveParameters& parameters) {
  return {{"prompt", request.prompt()},
          {"recipe", parameters.recipe()},
          {"width", parameters.width()},
          {"height", parameters.height()},
          {"num_frames", parameters.num_frames()},
          {"frame_rate", absl::StrCat(parameters.frame_rate_numerator(), "/",
                                      parameters.frame_rate_denominator())},
          {"seed", parameters.seed()}};
}

json DescribeOwn(const Measured& measured, const Options& options, const std::string& device) {
  json phases = json::object();
  for (const auto& [name, seconds] : measured.phases) phases[name] = Median(seconds);
  json peaks = json::object();
  for (const v1::MemoryAmounts& amounts : measured.report.memory()) {
    if (amounts.peak_bytes() > 0) peaks[amounts.owner()] = amounts.peak_bytes();
  }
  return {
      {"model", absl::StrCat(measured.report.model_name(), " ", measured.report.model_version())},
      {"device", device},
      {"dtype", measured.report.parameters().compute_dtype()},
      {"condition", options.warmup > 0 ? "warm" : "first request included"},
      {"seconds", Summarize(measured.seconds)},
      {"median_seconds_of_phases", std::move(phases)},
      {"peak_bytes", std::move(peaks)}};
}

/// Starts the server `starts` times, keeps the last and adds the times to readiness.
absl::StatusOr<std::unique_ptr<ServerProcess>> StartServer(const Options& options,
                                                           std::vector<double>* start_seconds) {
  std::unique_ptr<ServerProcess> server;
  for (int i = 0; i < options.starts; ++i) {
    server.reset();
    LTX_ASSIGN_OR_RETURN(server, ServerProcess::Start(options.start_server, kStartTimeout));
    start_seconds->push_back(server->start_seconds());
  }
  return server;
}

absl::StatusOr<json> Run(const Options& options) {
  json result = {{"machine", DescribeMachine()}, {"build", DescribeBuild()}};
  result["machine"]["load_average_before"] = LoadAverage();
  std::unique_ptr<ServerProcess> process;
  std::string address = options.server;
  if (!options.start_server.empty()) {
    std::vector<double> start_seconds;
    LTX_ASSIGN_OR_RETURN(process, StartServer(options, &start_seconds));
    address = process->address();
    result["start_seconds"] = Summarize(start_seconds);
  }
  LTX_ASSIGN_OR_RETURN(const auto client, client::VideoClient::Connect(address, kConnectTimeout));
  LTX_ASSIGN_OR_RETURN(const v1::HealthResponse health, client->Health(kConnectTimeout));
  LTX_ASSIGN_OR_RETURN(const auto clip, TemporaryClip::Create());
  for (int i = 0; i < options.warmup; ++i) {
    LTX_RETURN_IF_ERROR(Request(client.get(), options.request, clip->path(), nullptr));
  }

  // In turns, so that a change of the machine's load meets both.
  Measured own;
  std::vector<double> other;
  for (int i = 0; i < options.repeat; ++i) {
    LTX_RETURN_IF_ERROR(Request(client.get(), options.request, clip->path(), &own));
    if (options.other.empty()) continue;
    LTX_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                         TimeCommand(options.other, options.other_pattern));
    other.insert(other.end(), seconds.begin(), seconds.end());
  }
  result["machine"]["load_average_after"] = LoadAverage();
  result["input"] = DescribeInput(options.request, own.report.parameters());
  result["ltx_server"] = DescribeOwn(own, options, health.device().description());
  if (!options.other.empty()) {
    result["other"] = {{"name", options.other_name}, {"seconds", Summarize(other)}};
    result["other_over_ltx_server"] = {{"median", Median(other) / Median(own.seconds)},
                                       {"min", Minimum(other) / Minimum(own.seconds)}};
  }
  return result;
}

void AddRequestFlags(CLI::App* app, v1::GenerateVideoRequest* request) {
  request->set_prompt("a red circle moves from left to right on a black background, a low hum");
  app->add_option_function<std::string>(
      "--prompt", [request](const std::string& v) { request->set_prompt(v); },
      absl::StrCat("Default: ", request->prompt()));
  app->add_option_function<std::string>(
      "--recipe", [request](const std::string& v) { request->set_recipe(v); },
      "Default: the model's own, as for the sizes below");
  app->add_option_function<int32_t>(
      "--width", [request](int32_t v) { request->set_width(v); }, "Pixels");
  app->add_option_function<int32_t>(
      "--height", [request](int32_t v) { request->set_height(v); }, "Pixels");
  app->add_option_function<int32_t>(
      "--num-frames", [request](int32_t v) { request->set_num_frames(v); }, "8k + 1");
  app->add_option_function<double>(
      "--frame-rate", [request](double v) { request->set_frame_rate(v); }, "Frames per second");
  app->add_option_function<int64_t>(
      "--seed", [request](int64_t v) { request->set_seed(v); }, "Default: 10");
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Times a request, from sending the prompt to the finished file at the client, in turns with\n"
      "an external command, and prints machine, build, input, times and ratio as JSON.",
      "compare");
  CLI::Option* server =
      app.add_option("--server", options.server, "HOST:PORT of a server that runs");
  CLI::Option* start =
      app.add_option("--start-server", options.start_server,
                     "Shell command that starts a server, e.g. 'ltx_server --listen 127.0.0.1:0'; "
                     "it ends with this program")
          ->excludes(server);
  app.add_option("--starts", options.starts,
                 "Start the server this many times and tell how long each took to readiness")
      ->check(CLI::PositiveNumber)
      ->needs(start)
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "Requests before the measured ones")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Measured requests, and runs of --other")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI::Option* other =
      app.add_option("--other", options.other, "Shell command that makes the same clip");
  app.add_option("--other-name", options.other_name, "What the JSON calls it")
      ->needs(other)
      ->capture_default_str();
  app.add_option("--other-pattern", options.other_pattern,
                 "POSIX extended regular expression whose group finds the seconds of a clip in the "
                 "output of --other, at every match; without it the command's wall time counts")
      ->needs(other);
  AddRequestFlags(&app, &options.request);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "compare: %s (see --help)\n", error.what());
    return 2;
  }
  if (options.server.empty() && options.start_server.empty()) {
    std::fprintf(stderr, "compare: give --server or --start-server (see --help)\n");
    return 2;
  }
  const absl::StatusOr<json> result = Run(options);
  if (!result.ok()) {
    std::fprintf(stderr, "compare: %s\n", result.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", result->dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace
}  // namespace ltx::bench

int main(int argc, char** argv) { return ltx::bench::Main(argc, argv); }
