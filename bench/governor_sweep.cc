// Holds projections against what happens: asks a server what clips of several sizes will cost,
// makes them, and prints projected and measured seconds and bytes as a table.
//
//   bazel run //bench:governor_sweep -- --start-server 'bazel-bin/server/ltx_server
//       --listen 127.0.0.1:0'

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
                                    "256x128x33", "256x192x25", "192x192x33", "256x192x33",
                                    "192x192x49", "256x256x33", "256x256x41"};
  int servers = 1;
  int repeat = 5;
  bool verbose = false;
  v1::GenerateVideoRequest request;
};

/// Projected and measured seconds of one run.
struct Timing {
  double projected = 0;
  double measured = 0;

  double Error() const { return projected / measured - 1; }
};

/// Runs that are alike: their medians count, since one run alone is as far off as the machine is
/// unsteady.
class Timings {
 public:
  void Add(const Timing& timing) { runs_.push_back(timing); }

  Timing Medians() const { return {MedianOf(&Timing::projected), MedianOf(&Timing::measured)}; }
  /// (largest - smallest) / median of the measured seconds.
  double Spread() const {
    const auto [least, most] = std::minmax_element(
        runs_.begin(), runs_.end(),
        [](const Timing& a, const Timing& b) { return a.measured < b.measured; });
    return (most->measured - least->measured) / Medians().measured;
  }
  /// Of the run that was projected worst.
  double LargestError() const {
    double largest = 0;
    for (const Timing& run : runs_) largest = std::max(largest, std::abs(run.Error()));
    return largest;
  }

 private:
  double MedianOf(double Timing::*part) const {
    std::vector<double> values;
    for (const Timing& run : runs_) values.push_back(run.*part);
    return Median(values);
  }

  std::vector<Timing> runs_;
};

/// One size of clip.
struct Line {
  std::string clip;
  v1::GenerateVideoRequest request;
  /// Before the server's first clip; of the last server.
  v1::PlanResponse plan;
  /// What such plans projected, without what a size pays once.
  std::vector<double> early;
  /// As the plan at the run's admission said, what a size pays once included, and as the server
  /// reports it. First ones: one of each server.
  Timings first;
  Timings later;
  /// Of the later runs, by phase.
  std::map<v1::Phase, std::vector<double>> phases;
  /// Of the run whose memory was projected worst.
  int64_t projected_bytes = 0;
  int64_t peak_bytes = 0;

  double EarlyError() const { return Median(early) / later.Medians().measured - 1; }
  double MemoryError() const {
    return static_cast<double>(projected_bytes) / static_cast<double>(peak_bytes) - 1;
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

/// A prompt that was seen before would be kept, and cost nothing: each run has its own, as many
/// tokens long as the others.
std::string TakeOf(const std::string& prompt, int take) {
  return absl::StrFormat("%s, take %03d", prompt, take);
}

absl::Status Measure(client::VideoClient* client, const std::string& path, bool first, Line* line) {
  v1::PlanResponse plan;
  client::VideoClient::GenerateOptions options;
  options.on_event = [&plan](const v1::GenerateVideoEvent& event) {
    if (event.has_admitted()) plan = event.admitted().plan();
  };
  LTX_ASSIGN_OR_RETURN(const v1::GenerationReport report,
                       client->Generate(line->request, path, options));
  const Timing timing = {plan.projected_seconds(), report.run_seconds()};
  if (first) {
    line->first.Add(timing);
  } else {
    line->later.Add(timing);
    for (const v1::PhaseTiming& phase : report.timings()) {
      line->phases[phase.phase()].push_back(phase.seconds());
    }
  }
  for (const v1::MemoryAmounts& amounts : report.memory()) {
    if (amounts.owner() != "total") continue;
    const auto error = [](int64_t projected, int64_t peak) {
      return std::abs(static_cast<double>(projected) / static_cast<double>(peak) - 1);
    };
    if (line->peak_bytes != 0 && error(plan.projected_bytes(), amounts.peak_bytes()) <=
                                     error(line->projected_bytes, line->peak_bytes)) {
      continue;
    }
    line->projected_bytes = plan.projected_bytes();
    line->peak_bytes = amounts.peak_bytes();
  }
  return absl::OkStatus();
}

void PrintPhases(const Line& line) {
  for (const v1::PhaseProjection& phase : line.plan.phases()) {
    const auto measured = line.phases.find(phase.phase());
    if (measured == line.phases.end()) continue;
    const double median = Median(measured->second);
    std::printf(
        "    %-12s %s %3d units: projected %.4f s, measured %.4f s (%.4f least), %+.1f %%\n",
        v1::Phase_Name(phase.phase()).c_str(), line.clip.c_str(), phase.units(), phase.seconds(),
        median, Minimum(measured->second), 100 * (phase.seconds() / median - 1));
  }
}

void Print(const std::vector<Line>& lines, const Options& options) {
  std::printf(
      "| clip | first (median of %d): projected, measured s | spread | error | later (median of "
      "%d): "
      "projected, measured s | spread | error | by the plan before all clips | projected, measured "
      "MB | error |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n",
      options.servers, options.servers * options.repeat);
  double first = 0;
  double single = 0;
  double later = 0;
  double early = 0;
  double memory = 0;
  for (const Line& line : lines) {
    const Timing once = line.first.Medians();
    const Timing again = line.later.Medians();
    std::printf(
        "| %s | %.3f, %.3f | %.0f %% | %+.1f %% | %.3f, %.3f | %.0f %% | %+.1f %% | %+.1f %% | "
        "%.3f, %.3f | %+.2f %% |\n",
        line.clip.c_str(), once.projected, once.measured, 100 * line.first.Spread(),
        100 * once.Error(), again.projected, again.measured, 100 * line.later.Spread(),
        100 * again.Error(), 100 * line.EarlyError(),
        static_cast<double>(line.projected_bytes) * 1e-6,
        static_cast<double>(line.peak_bytes) * 1e-6, 100 * line.MemoryError());
    first = std::max(first, std::abs(once.Error()));
    single = std::max(single, line.first.LargestError());
    later = std::max(later, std::abs(again.Error()));
    early = std::max(early, std::abs(line.EarlyError()));
    memory = std::max(memory, std::abs(line.MemoryError()));
  }
  std::printf(
      "\nlargest error: first %.1f %% (a single one %.1f %%), later %.1f %%, by the plan before "
      "all "
      "clips %.1f %%, memory %.2f %%\n",
      100 * first, 100 * single, 100 * later, 100 * early, 100 * memory);
  if (!options.verbose) return;
  for (const Line& line : lines) PrintPhases(line);
}

/// All sizes by one server.
absl::Status Sweep(const Options& options, const std::string& path, std::vector<Line>* lines) {
  std::unique_ptr<ServerProcess> process;
  std::string address = options.server;
  if (!options.start_server.empty()) {
    LTX_ASSIGN_OR_RETURN(process, ServerProcess::Start(options.start_server, kStartTimeout));
    address = process->address();
  }
  LTX_ASSIGN_OR_RETURN(const auto client, client::VideoClient::Connect(address, kConnectTimeout));
  // One plan of each comes first: no measurement but the calibration's is in it. Then the sizes
  // take turns, so that what the machine does meanwhile meets them all alike, and each run has the
  // plan it was admitted by.
  int take = 0;
  for (Line& line : *lines) {
    line.request.set_prompt(TakeOf(options.request.prompt(), take));
    LTX_ASSIGN_OR_RETURN(line.plan, client->Plan(line.request));
    line.early.push_back(line.plan.projected_seconds() - line.plan.first_use_seconds());
  }
  for (int round = 0; round <= options.repeat; ++round) {
    for (Line& line : *lines) {
      line.request.set_prompt(TakeOf(options.request.prompt(), ++take));
      LTX_RETURN_IF_ERROR(Measure(client.get(), path, round == 0, &line));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const std::array<double, 3> before = LoadAverage();
  LTX_ASSIGN_OR_RETURN(const auto file, TemporaryClip::Create());
  std::vector<Line> lines;
  for (const std::string& clip : options.clips) {
    Line line;
    line.clip = clip;
    line.request = options.request;
    LTX_RETURN_IF_ERROR(SetSize(clip, &line.request));
    lines.push_back(std::move(line));
  }
  for (int server = 0; server < options.servers; ++server) {
    LTX_RETURN_IF_ERROR(Sweep(options, file->path(), &lines));
  }
  Print(lines, options);
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
  CLI::Option* start =
      app.add_option("--start-server", options.start_server,
                     "Shell command that starts a server; it ends when it has made its clips")
          ->excludes(server);
  app.add_option("--servers", options.servers,
                 "Servers to start, one after the other: a clip is the first of its size once in "
                 "each")
      ->check(CLI::PositiveNumber)
      ->needs(start)
      ->capture_default_str();
  app.add_option("--clips", options.clips, "WxHxFRAMES, in this order")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs of each clip after its first; the median counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "Projected and measured seconds of every phase, too");
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
