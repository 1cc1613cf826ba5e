// Times stages of the engine on random weights and prints JSON.
//
//   bazel run --config=cuda //bench:ltx_bench -- --device cuda --clip 768x512x121 --floor
//   bazel run --config=cuda //bench:ltx_bench -- --device cuda --stage text --stage video_decode

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/command.h"
#include "bench/dit_stage.h"
#include "bench/kernel_trace.h"
#include "bench/load_file.h"
#include "bench/machine.h"
#include "bench/sample.h"
#include "bench/stage.h"
#include "kernels/cpu/openmp_environment.h"
#include "kernels/device_factory.h"
#include "kernels/status_macros.h"
#include "tools/random_model/model_size.h"
#include "tools/random_model/random_file.h"

namespace ltx::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Kernels that a trace lists by name; the rest is a sum.
constexpr size_t kListedKernels = 24;
constexpr char kDit[] = "dit";

struct Options {
  std::string device = "auto";
  int threads = 0;
  std::string dtype = "bf16";
  std::vector<std::string> stages;
  std::vector<std::string> clips;
  std::string scale = "full";
  std::string version = "2.5";
  std::string recipe = "distilled";
  double frame_rate = 24.0;
  int64_t audio_tokens = 0;
  std::vector<int64_t> text_tokens = {1024};
  std::vector<int> passes = {1};
  int levels = 1;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t text_layers = 0;
  int warmup = 3;
  int repeat = 10;
  int pause_milliseconds = 0;
  bool floor = false;
  bool eager = false;
  bool trace = false;
  bool check = false;
  std::string load;
  std::string other;
  std::string other_pattern;
};

DType DTypeOf(const Options& options) {
  return options.dtype == "f32" ? DType::kF32 : DType::kBF16;
}

random_model::ModelSize ModelSizeOf(const Options& options) {
  const auto family = options.version == "2.3" ? checkpoint::GemmaFamily::kGemma3
                                               : checkpoint::GemmaFamily::kGemma4;
  random_model::ModelSize size =
      options.scale == "tiny" ? random_model::TinySize(family) : random_model::FullSize(family);
  if (options.layers > 0) size.layers = options.layers;
  if (options.heads > 0) size.heads = options.heads;
  if (options.text_layers > 0) size.text_layers = options.text_layers;
  return size;
}

absl::StatusOr<ClipSize> ParseClip(const std::string& text, const Options& options) {
  ClipSize clip;
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &clip.width) ||
      !absl::SimpleAtoi(parts[1], &clip.height) || !absl::SimpleAtoi(parts[2], &clip.frames) ||
      clip.width < 32 || clip.height < 32 || clip.frames < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--clip is ", text, "; WIDTHxHEIGHTxFRAMES would be legal"));
  }
  clip.frame_rate = options.frame_rate;
  clip.forced_audio_tokens = options.audio_tokens;
  return clip;
}

/// Wall times of `run` up to the end of its work on the device, in milliseconds.
absl::StatusOr<std::vector<double>> Time(Device& device, const Options& options,
                                         const std::function<absl::Status()>& run) {
  std::vector<double> milliseconds;
  for (int i = 0; i < options.warmup + options.repeat; ++i) {
    LTX_RETURN_IF_ERROR(device.Synchronize());
    std::this_thread::sleep_for(std::chrono::milliseconds(options.pause_milliseconds));
    const Clock::time_point start = Clock::now();
    LTX_RETURN_IF_ERROR(run());
    LTX_RETURN_IF_ERROR(device.Synchronize());
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    if (i >= options.warmup) milliseconds.push_back(took.count());
  }
  return milliseconds;
}

absl::StatusOr<json> TraceOf(Device& device, const std::function<absl::Status()>& run) {
  LTX_RETURN_IF_ERROR(device.Synchronize());
  LTX_ASSIGN_OR_RETURN(const auto trace, StartKernelTrace());
  LTX_RETURN_IF_ERROR(run());
  LTX_RETURN_IF_ERROR(device.Synchronize());
  LTX_ASSIGN_OR_RETURN(const std::vector<KernelTrace::Entry> entries, trace->Finish());
  json listed = json::array();
  double total = 0.0;
  double rest = 0.0;
  int64_t kernels = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    total += entries[i].milliseconds;
    kernels += entries[i].count;
    if (i >= kListedKernels) {
      rest += entries[i].milliseconds;
      continue;
    }
    listed.push_back({{"kernel", entries[i].name},
                      {"count", entries[i].count},
                      {"milliseconds", entries[i].milliseconds}});
  }
  return json{{"kernels", kernels}, {"sum", total}, {"rest", rest}, {"by_kernel", listed}};
}

/// ||a - b|| / ||b||.
double RelativeDistance(absl::Span<const float> a, absl::Span<const float> b) {
  double difference = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

/// The ledger's peaks beside the projected ones, in bytes.
json DescribeMemory(const MemoryLedger::Snapshot& seen, int64_t resident,
                    const StageProjection& projection) {
  json measured = {{"resident", resident}, {"total", seen.total.peak_bytes}};
  json projected = {{"resident", projection.resident_bytes}, {"total", projection.peak_bytes}};
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    const std::string owner(MemoryOwnerName(static_cast<MemoryOwner>(i)));
    if (seen.by_owner[i].peak_bytes > 0) measured[owner] = seen.by_owner[i].peak_bytes;
    if (projection.owner_peak_bytes[i] > 0) projected[owner] = projection.owner_peak_bytes[i];
  }
  const auto error = [](int64_t projected_bytes, int64_t measured_bytes) {
    return measured_bytes == 0
               ? 0.0
               : static_cast<double>(projected_bytes) / static_cast<double>(measured_bytes) - 1.0;
  };
  return {
      {"measured_peak_bytes", measured},
      {"projected_peak_bytes", projected},
      {"projection_error", error(projection.peak_bytes, seen.total.peak_bytes)},
      {"projection_error_beyond_resident",
       error(projection.peak_bytes - projection.resident_bytes, seen.total.peak_bytes - resident)}};
}

/// Distances of the results from those of the CPU device in f32, result by result, run by run:
/// where recordings are on, the first is recorded and the others replayed.
absl::StatusOr<json> Check(const std::string& name, const checkpoint::ModelSet& files,
                           Device& device, const PreparedRun& prepared, const StageSize& size,
                           const Options& options) {
  LTX_ASSIGN_OR_RETURN(const OpenedDevice cpu, OpenDevice("cpu", options.threads));
  StageOptions reference_options;
  reference_options.dtype = DType::kF32;
  reference_options.recipe = options.recipe;
  LTX_ASSIGN_OR_RETURN(const auto reference,
                       LoadStage(name, cpu.device.get(), &files, reference_options));
  LTX_ASSIGN_OR_RETURN(const PreparedRun expected, reference->Prepare(size));
  LTX_ASSIGN_OR_RETURN(const std::vector<Tensor> expected_results, expected.run());
  json runs = json::array();
  for (int i = 0; i < 3; ++i) {
    LTX_ASSIGN_OR_RETURN(const std::vector<Tensor> results, prepared.run());
    json distances = json::array();
    for (size_t j = 0; j < results.size(); ++j) {
      LTX_ASSIGN_OR_RETURN(const std::vector<float> got, ValuesOf(device, results[j]));
      LTX_ASSIGN_OR_RETURN(const std::vector<float> want,
                           ValuesOf(*cpu.device, expected_results[j]));
      distances.push_back(RelativeDistance(got, want));
    }
    runs.push_back(std::move(distances));
  }
  return runs;
}

absl::Status AddFloor(Device& device, const checkpoint::ModelSet& files, const StageSize& size,
                      double milliseconds, const Options& options, json* result) {
  LTX_ASSIGN_OR_RETURN(DitFloor floor,
                       DitFloor::Make(device, files.transformer, size, DTypeOf(options)));
  const auto run = [&] { return floor.Run(); };
  LTX_ASSIGN_OR_RETURN(const std::vector<double> least, Time(device, options, run));
  (*result)["floor_milliseconds"] = Summarize(least);
  (*result)["over_floor"] = milliseconds / Median(least);
  if (!options.trace) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN((*result)["floor_trace"], TraceOf(device, run));
  return absl::OkStatus();
}

absl::StatusOr<json> Measure(const std::string& name, const checkpoint::ModelSet& files,
                             Device& device, Stage& stage, const StageSize& size,
                             const Options& options) {
  LTX_ASSIGN_OR_RETURN(const PreparedRun prepared, stage.Prepare(size));
  const int64_t resident = device.ledger().Read().total.live_bytes;
  const auto run = [&] { return prepared.run().status(); };
  LTX_RETURN_IF_ERROR(run());
  LTX_RETURN_IF_ERROR(device.ImproveAll());
  device.ledger().ResetPeaks();
  LTX_ASSIGN_OR_RETURN(const std::vector<double> times, Time(device, options, run));
  const MemoryLedger::Snapshot seen = device.ledger().Read();
  LTX_ASSIGN_OR_RETURN(const StageProjection projection, stage.Project(size));
  const double milliseconds = Median(times);
  // A multiplication and an addition each.
  const double flops = 2.0 * (projection.work.products + projection.work.attention);
  json result = {
      {"clip", absl::StrCat(size.clip.width, "x", size.clip.height, "x", size.clip.frames)},
      {"size", prepared.size},
      {"milliseconds", Summarize(times)},
      {"teraflop",
       {{"products", 2e-12 * projection.work.products},
        {"attention", 2e-12 * projection.work.attention}}},
      {"teraflop_per_second", flops * 1e-9 / milliseconds},
      {"memory", DescribeMemory(seen, resident, projection)}};
  if (prepared.details) result.update(prepared.details());
  if (options.trace) {
    LTX_ASSIGN_OR_RETURN(result["trace"], TraceOf(device, run));
  }
  if (options.floor && name == kDit && size.passes == 1) {
    LTX_RETURN_IF_ERROR(AddFloor(device, files, size, milliseconds, options, &result));
  }
  if (options.check) {
    LTX_ASSIGN_OR_RETURN(result["distance_from_cpu"],
                         Check(name, files, device, prepared, size, options));
  }
  std::fprintf(stderr, "%s %s: %.3f ms, %.0f TFLOP/s, peak %.3f GB, projected %+.1f %%\n",
               name.c_str(), result["size"].dump().c_str(), milliseconds,
               result["teraflop_per_second"].get<double>(),
               static_cast<double>(seen.total.peak_bytes) * 1e-9,
               1e2 * result["memory"]["projection_error"].get<double>());
  return result;
}

/// All sizes of one stage.
absl::StatusOr<json> MeasureStage(const std::string& name, const checkpoint::ModelSet& files,
                                  Device& device, const Options& options) {
  StageOptions stage_options;
  stage_options.dtype = DTypeOf(options);
  stage_options.record = !options.eager;
  stage_options.recipe = options.recipe;
  const Clock::time_point start = Clock::now();
  LTX_ASSIGN_OR_RETURN(const auto stage, LoadStage(name, &device, &files, stage_options));
  LTX_RETURN_IF_ERROR(device.Synchronize());
  const std::chrono::duration<double> loading = Clock::now() - start;
  json result = {{"stage", name},
                 {"load_seconds", loading.count()},
                 {"weight_bytes", device.ledger().Read().total.live_bytes},
                 {"runs", json::array()}};
  for (const std::string& text : options.clips) {
    StageSize size;
    LTX_ASSIGN_OR_RETURN(size.clip, ParseClip(text, options));
    size.levels = options.levels;
    for (const int64_t text_tokens : options.text_tokens) {
      size.text_tokens = text_tokens;
      for (const int passes : name == kDit ? options.passes : std::vector<int>{1}) {
        size.passes = passes;
        LTX_ASSIGN_OR_RETURN(json run, Measure(name, files, device, *stage, size, options));
        result["runs"].push_back(std::move(run));
      }
    }
  }
  return result;
}

absl::StatusOr<json> Run(const Options& options, bool* complete) {
  LTX_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(options.device, options.threads));
  Device& device = *opened.device;
  json result = {{"machine", DescribeMachine()},
                 {"build", DescribeBuild()},
                 {"device", {{"name", device.name()}, {"description", device.description()}}},
                 {"dtype", options.dtype},
                 {"scale", options.scale},
                 {"version", options.version},
                 {"pause_milliseconds", options.pause_milliseconds},
                 {"stages", json::array()}};
  if (!options.load.empty()) {
    LTX_ASSIGN_OR_RETURN(result["load"],
                         MeasureLoad(options.load, device, DTypeOf(options), options.repeat));
    std::fprintf(stderr, "load: %s\n", result["load"].dump().c_str());
  }
  if (!options.stages.empty()) {
    LTX_ASSIGN_OR_RETURN(const checkpoint::ModelSet files,
                         random_model::RandomModelSet(ModelSizeOf(options)));
    for (const std::string& name : options.stages) {
      absl::StatusOr<json> measured = MeasureStage(name, files, device, options);
      if (!measured.ok()) {
        // The others may have cost much: they are printed all the same.
        *complete = false;
        const std::string error = measured.status().ToString();
        std::fprintf(stderr, "%s: %s\n", name.c_str(), error.c_str());
        measured = json{{"stage", name}, {"error", error}};
      }
      result["stages"].push_back(*std::move(measured));
    }
  }
  if (!options.other.empty()) {
    LTX_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                         TimeCommand(options.other, options.other_pattern));
    result["other_seconds"] = Summarize(seconds);
  }
  return result;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Times stages of the engine on random weights and prints JSON.", "ltx_bench");
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "Of the CPU device; 0: one per core")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "Of weights and activations")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--stage", options.stages,
                 absl::StrCat("Of ", absl::StrJoin(StageNames(), ", "),
                              "; may be given several times. Default: dit"))
      ->check(CLI::IsMember(StageNames()));
  app.add_option("--clip", options.clips,
                 "WIDTHxHEIGHTxFRAMES; may be given several times. Default: 768x512x121");
  app.add_option("--scale", options.scale,
                 "Of the model. full: the published size; tiny: for tests")
      ->check(CLI::IsMember({"full", "tiny"}))
      ->capture_default_str();
  app.add_option("--version", options.version,
                 "Of the model: 2.5 has a Gemma 4 for its text tower, 2.3 a Gemma 3")
      ->check(CLI::IsMember({"2.3", "2.5"}))
      ->capture_default_str();
  app.add_option("--recipe", options.recipe, "Of the pipeline")->capture_default_str();
  app.add_option("--frame-rate", options.frame_rate, "Frames per second")->capture_default_str();
  app.add_option("--audio-tokens", options.audio_tokens, "0: what the clip's duration gives")
      ->capture_default_str();
  app.add_option("--text-tokens", options.text_tokens, "Of the prompt; may be given several times")
      ->capture_default_str();
  app.add_option("--passes", options.passes,
                 "Guidance passes in one batch: with the prompt, without it, with self-attention "
                 "skipped in one block, without cross-modal attention; may be given several times")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  app.add_option("--levels", options.levels, "Distinct noise levels among the tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Blocks of the transformer; 0: those of the scale")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--heads", options.heads,
                 "Of every attention of transformer and connectors, widths follow; 0: those of the "
                 "scale")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--text-layers", options.text_layers, "Of the text tower; 0: those of the scale")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--warmup", options.warmup,
                 "Runs before the measured ones, after one that lets the device choose algorithms")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Measured runs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--pause-ms", options.pause_milliseconds,
                 "Idle milliseconds before each run: back to back, runs are slowed down by what "
                 "power and temperature the device may keep up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--floor", options.floor,
               "dit: also time the matrix products and attentions of one pass alone");
  app.add_flag("--eager", options.eager, "Issue every operation anew instead of replaying graphs");
  app.add_flag("--trace", options.trace, "Also list the kernels of one run by time");
  app.add_flag("--check", options.check,
               "Also tell how far the results are from those of the CPU device in f32");
  app.add_option("--load", options.load,
                 "Transformer file to load --repeat times, beside the rate of the bus. Without "
                 "--stage nothing else is measured");
  CLI::Option* other =
      app.add_option("--other", options.other, "Shell command to time after the rest");
  app.add_option("--other-pattern", options.other_pattern,
                 "POSIX extended regular expression whose group finds seconds in the output of "
                 "--other, at every match; without it the command's wall time counts")
      ->needs(other);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "ltx_bench: %s (see --help)\n", error.what());
    return 2;
  }
  if (options.stages.empty() && options.load.empty()) options.stages = {kDit};
  if (options.clips.empty()) options.clips = {"768x512x121"};
  bool complete = true;
  const absl::StatusOr<json> result = Run(options, &complete);
  if (!result.ok()) {
    std::fprintf(stderr, "ltx_bench: %s\n", result.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", result->dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return complete ? 0 : 1;
}

}  // namespace
}  // namespace ltx::bench

int main(int argc, char** argv) {
  if (const absl::Status status = ltx::cpu::UsePassiveOpenMpThreads(argv); !status.ok()) {
    std::fprintf(stderr, "ltx_bench: %s\n", status.ToString().c_str());
  }
  return ltx::bench::Main(argc, argv);
}
