// Times a stage of the engine on random weights and prints JSON.
//
//   bazel run --config=cuda //bench:ltx_bench -- --device cuda --clip 768x512x121 --floor

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/command.h"
#include "bench/dit_stage.h"
#include "bench/kernel_trace.h"
#include "bench/machine.h"
#include "bench/random_file.h"
#include "bench/sample.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/dit/tensor_shapes.h"
#include "kernels/cpu/openmp_environment.h"
#include "kernels/device_factory.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Kernels that a trace lists by name; the rest is a sum.
constexpr size_t kListedKernels = 24;

struct Options {
  std::string device = "auto";
  int threads = 0;
  std::string dtype = "bf16";
  std::vector<std::string> clips;
  double frame_rate = 24.0;
  int64_t audio_tokens = 0;
  int64_t text_tokens = 1024;
  std::vector<int> passes = {1};
  int levels = 1;
  int64_t layers = 48;
  int64_t heads = 32;
  int warmup = 3;
  int repeat = 10;
  bool floor = false;
  bool eager = false;
  bool trace = false;
  bool check = false;
  std::string other;
  std::string other_pattern;
};

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
absl::StatusOr<std::vector<double>> Time(Device& device, int warmup, int repeat,
                                         const std::function<absl::Status()>& run) {
  std::vector<double> milliseconds;
  for (int i = 0; i < warmup + repeat; ++i) {
    LTX_RETURN_IF_ERROR(device.Synchronize());
    const Clock::time_point start = Clock::now();
    LTX_RETURN_IF_ERROR(run());
    LTX_RETURN_IF_ERROR(device.Synchronize());
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    if (i >= warmup) milliseconds.push_back(took.count());
  }
  return milliseconds;
}

json DescribePeaks(const MemoryLedger& ledger) {
  const MemoryLedger::Snapshot seen = ledger.Read();
  json peaks = {{"total", seen.total.peak_bytes}};
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    if (seen.by_owner[i].peak_bytes == 0) continue;
    const absl::string_view owner = MemoryOwnerName(static_cast<MemoryOwner>(i));
    peaks[std::string(owner)] = seen.by_owner[i].peak_bytes;
  }
  return peaks;
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

/// The transformer of the options over random weights.
absl::StatusOr<std::unique_ptr<dit::Transformer>> LoadDit(
    Device& device, const checkpoint::TransformerConfig& config,
    const std::shared_ptr<const RandomFile>& file, DType dtype) {
  checkpoint::WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(file));
  return dit::Transformer::Load(
      config, dit::ModelClass::kAudioVideo,
      checkpoint::WeightLoader(&device, &weights, dtype, MemoryOwner::kWeightsDit));
}

/// Distances of the device's velocities from those of the CPU device in f32, forward by forward:
/// where recordings are on, the first is issued, the second recorded and the third replayed.
absl::StatusOr<json> CheckDit(const dit::Transformer& transformer,
                              const std::shared_ptr<const RandomFile>& file, const ClipSize& clip,
                              int passes, const Options& options) {
  LTX_ASSIGN_OR_RETURN(const OpenedDevice cpu, OpenDevice("cpu", options.threads));
  LTX_ASSIGN_OR_RETURN(const auto reference,
                       LoadDit(*cpu.device, transformer.config(), file, DType::kF32));
  LTX_ASSIGN_OR_RETURN(
      const DitInputs expected_inputs,
      DitInputs::Make(*reference, clip, options.text_tokens, passes, options.levels));
  LTX_ASSIGN_OR_RETURN(const dit::StreamPair expected, expected_inputs.Forward(*reference));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> video, ToFloats(*cpu.device, expected.video));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> audio, ToFloats(*cpu.device, expected.audio));
  LTX_ASSIGN_OR_RETURN(
      const DitInputs inputs,
      DitInputs::Make(transformer, clip, options.text_tokens, passes, options.levels));
  json distances = json::array();
  for (int i = 0; i < 3; ++i) {
    LTX_ASSIGN_OR_RETURN(const dit::StreamPair velocity, inputs.Forward(transformer));
    LTX_ASSIGN_OR_RETURN(const std::vector<float> got_video,
                         ToFloats(transformer.device(), velocity.video));
    LTX_ASSIGN_OR_RETURN(const std::vector<float> got_audio,
                         ToFloats(transformer.device(), velocity.audio));
    distances.push_back({{"video", RelativeDistance(got_video, video)},
                         {"audio", RelativeDistance(got_audio, audio)}});
  }
  return distances;
}

absl::StatusOr<json> TimeDit(const dit::Transformer& transformer, const ClipSize& clip, int passes,
                             const Options& options) {
  Device& device = transformer.device();
  device.ledger().ResetPeaks();
  LTX_ASSIGN_OR_RETURN(
      const DitInputs inputs,
      DitInputs::Make(transformer, clip, options.text_tokens, passes, options.levels));
  const auto forward = [&] { return inputs.Forward(transformer).status(); };
  LTX_ASSIGN_OR_RETURN(const std::vector<double> times,
                       Time(device, options.warmup, options.repeat, forward));
  const DitFlops flops = FlopsOf(transformer.config(), clip, options.text_tokens);
  json result = {
      {"clip", absl::StrCat(clip.width, "x", clip.height, "x", clip.frames)},
      {"video_tokens", clip.video_tokens()},
      {"audio_tokens", clip.audio_tokens()},
      {"text_tokens", options.text_tokens},
      {"passes", passes},
      {"milliseconds", Summarize(times)},
      {"teraflop",
       {{"products", passes * flops.products * 1e-12},
        {"attention", passes * flops.attention * 1e-12}}},
      {"teraflop_per_second", passes * (flops.products + flops.attention) * 1e-9 / Median(times)},
      {"peak_bytes", DescribePeaks(device.ledger())}};
  if (options.trace) {
    LTX_ASSIGN_OR_RETURN(result["trace"], TraceOf(device, forward));
  }
  if (options.floor && passes == 1) {
    LTX_ASSIGN_OR_RETURN(DitFloor floor, DitFloor::Make(device, transformer.config(), clip,
                                                        options.text_tokens, transformer.dtype()));
    const auto run = [&] { return floor.Run(); };
    LTX_ASSIGN_OR_RETURN(const std::vector<double> least,
                         Time(device, options.warmup, options.repeat, run));
    result["floor_milliseconds"] = Summarize(least);
    result["over_floor"] = Median(times) / Median(least);
    if (options.trace) {
      LTX_ASSIGN_OR_RETURN(result["floor_trace"], TraceOf(device, run));
    }
  }
  return result;
}

absl::StatusOr<json> Run(const Options& options) {
  LTX_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(options.device, options.threads));
  Device& device = *opened.device;
  checkpoint::TransformerConfig config = FullSizeConfig();
  config.num_layers = options.layers;
  config.num_attention_heads = config.audio_num_attention_heads = options.heads;
  config.cross_attention_dim = config.video_width();
  config.audio_cross_attention_dim = config.audio_width();
  const DType dtype = options.dtype == "f32" ? DType::kF32 : DType::kBF16;

  const Clock::time_point start = Clock::now();
  const auto file = std::make_shared<const RandomFile>(dit::ShapesOf(config));
  const Clock::time_point made = Clock::now();
  LTX_ASSIGN_OR_RETURN(const auto transformer, LoadDit(device, config, file, dtype));
  LTX_RETURN_IF_ERROR(device.Synchronize());
  transformer->set_recording(!options.eager);
  const std::chrono::duration<double> loading = Clock::now() - made;
  const std::chrono::duration<double> making = made - start;

  json result = {{"machine", DescribeMachine()},
                 {"build", DescribeBuild()},
                 {"device", {{"name", device.name()}, {"description", device.description()}}},
                 {"stage", "dit"},
                 {"dtype", options.dtype},
                 {"layers", options.layers},
                 {"weights",
                  {{"bytes", file->tensor_bytes()},
                   {"make_seconds", making.count()},
                   {"load_seconds", loading.count()}}},
                 {"runs", json::array()}};
  for (const std::string& text : options.clips) {
    LTX_ASSIGN_OR_RETURN(const ClipSize clip, ParseClip(text, options));
    for (const int passes : options.passes) {
      LTX_ASSIGN_OR_RETURN(json run, TimeDit(*transformer, clip, passes, options));
      std::fprintf(stderr, "%s passes %d: %.3f ms\n", text.c_str(), passes,
                   run["milliseconds"]["median"].get<double>());
      if (options.check) {
        LTX_ASSIGN_OR_RETURN(run["distance_from_cpu"],
                             CheckDit(*transformer, file, clip, passes, options));
        std::fprintf(stderr, "  distance from the CPU: %s\n",
                     run["distance_from_cpu"].dump().c_str());
      }
      result["runs"].push_back(std::move(run));
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
  CLI::App app("Times the diffusion transformer on random weights and prints JSON.", "ltx_bench");
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", options.threads, "Of the CPU device; 0: one per core")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "Of weights and activations")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--clip", options.clips, "WIDTHxHEIGHTxFRAMES; may be given several times")
      ->required();
  app.add_option("--frame-rate", options.frame_rate, "Frames per second")->capture_default_str();
  app.add_option("--audio-tokens", options.audio_tokens, "0: what the clip's duration gives")
      ->capture_default_str();
  app.add_option("--text-tokens", options.text_tokens, "Of the prompt")->capture_default_str();
  app.add_option("--passes", options.passes,
                 "Guidance passes in one batch: with the prompt, without it, with self-attention "
                 "skipped in one block, without cross-modal attention; may be given several times")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  app.add_option("--levels", options.levels, "Distinct noise levels among the tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Blocks of the transformer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--heads", options.heads, "Of every attention; widths follow")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "Runs before the measured ones")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Measured runs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--floor", options.floor,
               "Also time the matrix products and attentions of one pass alone");
  app.add_flag("--eager", options.eager, "Issue every operation anew instead of replaying graphs");
  app.add_flag("--trace", options.trace, "Also list the kernels of one run by time");
  app.add_flag("--check", options.check,
               "Also tell how far the results are from those of the CPU device in f32");
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
  const absl::StatusOr<json> result = Run(options);
  if (!result.ok()) {
    std::fprintf(stderr, "ltx_bench: %s\n", result.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", result->dump(2, ' ', false, json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace
}  // namespace ltx::bench

int main(int argc, char** argv) {
  if (const absl::Status status = ltx::cpu::UsePassiveOpenMpThreads(argv); !status.ok()) {
    std::fprintf(stderr, "ltx_bench: %s\n", status.ToString().c_str());
  }
  return ltx::bench::Main(argc, argv);
}
