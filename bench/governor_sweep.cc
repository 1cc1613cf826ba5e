// Holds projections against what happens: asks a server what clips of several sizes will cost,
// makes them, and prints projected and measured seconds and bytes as a table.
//
//   bazel run //bench:governor_sweep -- --start-server 'bazel-bin/server/ltx_server
//       --listen 127.0.0.1:0'

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/command.h"
#include "bench/machine.h"
#include "bench/sample.h"
#include "bench/temporary_clip.h"
#include "client/video_client.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

constexpr absl::Duration kStartTimeout = absl::Minutes(15);
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

struct Options {
  std::string server;
  std::string start_server;
  std::vector<std::string> clips = {"128x128x17", "128x128x41", "192x128x25", "192x192x17",
                                    "256x128x33", "256x192x25", "192x192x49", "256x256x25",
                                    "256x192x49", "256x256x49"};
  int repeat = 3;
  v1::GenerateVideoRequest request;
};

/// One size of clip.
struct Line {
  std::string clip;
  v1::PlanResponse plan;
  /// Of each run, as the server reports it.
  std::vector<double> seconds;
  int64_t peak_bytes = 0;

  double TimeError() const { return plan.projected_seconds() / Median(seconds) - 1; }
  double MemoryError() const {
    return static_cast<double>(plan.projected_bytes()) / static_cast<double>(peak_bytes) - 1;
  }
};

absl::Status SetSize(const std::string& clip, v1::GenerateVideoRequest* request) {
  const std::vector<std::string> parts = absl::StrSplit(clip, 'x');
  int32_t extents[3];
  for (int i = 0; i < 3; ++i) {
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[i], &extents[i])) {
      return absl::InvalidArgumentError(absl::StrCat("\"", clip, "\" is not WxHxFRAMES"));
    }
  }
  request->set_width(extents[0]);
  request->set_height(extents[1]);
  request->set_num_frames(extents[2]);
  return absl::OkStatus();
}

/// The plan comes first, so that nothing of the size has been measured but by calibration.
absl::StatusOr<Line> Measure(client::VideoClient* client, const std::string& clip,
                             const Options& options, const std::string& path) {
  Line line;
  line.clip = clip;
  v1::GenerateVideoRequest request = options.request;
  LTX_RETURN_IF_ERROR(SetSize(clip, &request));
  LTX_ASSIGN_OR_RETURN(line.plan, client->Plan(request));
  for (int i = 0; i < options.repeat; ++i) {
    LTX_ASSIGN_OR_RETURN(const v1::GenerationReport report, client->Generate(request, path, {}));
    line.seconds.push_back(report.run_seconds());
    for (const v1::MemoryAmounts& amounts : report.memory()) {
      if (amounts.owner() == "total") {
        line.peak_bytes = std::max(line.peak_bytes, amounts.peak_bytes());
      }
    }
  }
  return line;
}

void Print(const std::vector<Line>& lines) {
  std::printf(
      "| clip | projected s | measured s (median of %zu) | error | projected MB | measured MB | "
      "error |\n|---|---|---|---|---|---|---|\n",
      lines.empty() ? 0 : lines.front().seconds.size());
  double time = 0;
  double memory = 0;
  for (const Line& line : lines) {
    std::printf("| %s | %.3f | %.3f | %+.1f %% | %.3f | %.3f | %+.2f %% |\n", line.clip.c_str(),
                line.plan.projected_seconds(), Median(line.seconds), 100 * line.TimeError(),
                static_cast<double>(line.plan.projected_bytes()) * 1e-6,
                static_cast<double>(line.peak_bytes) * 1e-6, 100 * line.MemoryError());
    time = std::max(time, std::abs(line.TimeError()));
    memory = std::max(memory, std::abs(line.MemoryError()));
  }
  std::printf("\nlargest error: time %.1f %%, memory %.2f %%\n", 100 * time, 100 * memory);
}

absl::Status Run(const Options& options) {
  std::unique_ptr<ServerProcess> process;
  std::string address = options.server;
  if (!options.start_server.empty()) {
    LTX_ASSIGN_OR_RETURN(process, ServerProcess::Start(options.start_server, kStartTimeout));
    address = process->address();
  }
  const std::array<double, 3> before = LoadAverage();
  LTX_ASSIGN_OR_RETURN(const auto client, client::VideoClient::Connect(address, kConnectTimeout));
  LTX_ASSIGN_OR_RETURN(const auto file, TemporaryClip::Create());
  std::vector<Line> lines;
  for (const std::string& clip : options.clips) {
    LTX_ASSIGN_OR_RETURN(Line line, Measure(client.get(), clip, options, file->path()));
    lines.push_back(std::move(line));
  }
  Print(lines);
  std::printf("load average %.1f before, %.1f after\n", before[0], LoadAverage()[0]);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  options.request.set_prompt(
      "a red circle moves from left to right on a black background, a low hum");
  CLI::App app(
      "Asks a server what clips of several sizes will cost, makes them, and prints projected and\n"
      "measured seconds and bytes.",
      "governor_sweep");
  CLI::Option* server =
      app.add_option("--server", options.server, "HOST:PORT of a server that runs");
  app.add_option("--start-server", options.start_server,
                 "Shell command that starts a server; it ends with this program")
      ->excludes(server);
  app.add_option("--clips", options.clips, "WxHxFRAMES, in this order")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs of each clip; the median counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option_function<std::string>(
      "--recipe", [&options](const std::string& v) { options.request.set_recipe(v); },
      "Default: the model's own");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "governor_sweep: %s (see --help)\n", error.what());
    return 2;
  }
  if (options.server.empty() && options.start_server.empty()) {
    std::fprintf(stderr, "governor_sweep: give --server or --start-server (see --help)\n");
    return 2;
  }
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "governor_sweep: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace ltx::bench

int main(int argc, char** argv) { return ltx::bench::Main(argc, argv); }
