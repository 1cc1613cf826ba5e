// Writes a checkpoint set of random weights in the official layout: for measurements of loading and
// of whole runs where there is no trained model of that size.
//
//   make_checkpoint --output DIR                        LTX-2.5 at full size, 71 GB
//   make_checkpoint --output DIR --scale tiny           a few megabytes
//   make_checkpoint --output DIR --place text_encoder=/dev/shm/ltx
//
// A run that was interrupted goes on with the files that are not whole.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/status_macros.h"
#include "tools/random_model/checkpoint_writer.h"
#include "tools/random_model/model_layout.h"
#include "tools/random_model/model_size.h"

namespace ltx::random_model {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string output;
  std::string scale = "full";
  std::string version = "2.5";
  int64_t layers = 0;
  int64_t text_layers = 0;
  std::vector<std::string> places;
  std::vector<std::string> only;
  WriteOptions write;
  bool list = false;
};

ModelSize SizeOf(const Options& options) {
  const auto family = options.version == "2.3" ? checkpoint::GemmaFamily::kGemma3
                                               : checkpoint::GemmaFamily::kGemma4;
  ModelSize size = options.scale == "tiny" ? TinySize(family) : FullSize(family);
  if (options.layers > 0) size.layers = options.layers;
  if (options.text_layers > 0) size.text_layers = options.text_layers;
  return size;
}

/// Where a file is written, and where the set has it: the same place, or a link to it.
struct Target {
  std::string path;
  std::string link;
};

absl::StatusOr<Target> TargetOf(const FileLayout& file, const Options& options) {
  Target target;
  target.path = (fs::path(options.output) / file.path).string();
  for (const std::string& place : options.places) {
    const std::vector<std::string> parts = absl::StrSplit(place, absl::MaxSplits('=', 1));
    if (parts.size() != 2 || parts[1].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--place is ", place, "; KIND=FOLDER would be legal"));
    }
    if (parts[0] != checkpoint::FileKindName(file.kind)) continue;
    target.link = target.path;
    std::error_code error;
    target.path =
        (fs::absolute(parts[1], error) / fs::path(file.path).filename()).lexically_normal();
  }
  return target;
}

absl::Status MakeFolderOf(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("cannot make the folder of ", path, ": ", error.message()));
}

absl::Status MakeLink(const Target& target) {
  if (target.link.empty()) return absl::OkStatus();
  LTX_RETURN_IF_ERROR(MakeFolderOf(target.link));
  std::error_code error;
  if (fs::is_symlink(target.link, error)) fs::remove(target.link, error);
  fs::create_symlink(target.path, target.link, error);
  if (!error) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("cannot link ", target.link, " to ", target.path, ": ", error.message()));
}

absl::Status WriteFile(const FileLayout& file, const Target& target, const WriteOptions& options) {
  LTX_RETURN_IF_ERROR(MakeFolderOf(target.path));
  const double gigabytes = static_cast<double>(FileBytes(file, options)) * 1e-9;
  if (IsWritten(file, target.path, options)) {
    std::fprintf(stderr, "%s: there already, %.3f GB\n", target.path.c_str(), gigabytes);
  } else {
    const Clock::time_point start = Clock::now();
    LTX_RETURN_IF_ERROR(WriteCheckpoint(file, target.path, options));
    const std::chrono::duration<double> took = Clock::now() - start;
    std::fprintf(stderr, "%s: %.3f GB in %.2f s\n", target.path.c_str(), gigabytes, took.count());
  }
  return MakeLink(target);
}

absl::Status WriteManifest(const Options& options) {
  const std::string path = (fs::path(options.output) / "model.json").string();
  LTX_RETURN_IF_ERROR(MakeFolderOf(path));
  std::ofstream stream(path, std::ios::trunc);
  stream << ManifestOf(absl::StrCat("random-", options.version, "-", options.scale));
  stream.close();
  if (stream.good()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("cannot write ", path));
}

absl::Status Run(const Options& options) {
  const ModelSize size = SizeOf(options);
  LTX_ASSIGN_OR_RETURN(std::vector<FileLayout> files, FilesOf(size));
  if (!options.only.empty()) {
    files.erase(std::remove_if(files.begin(), files.end(),
                               [&](const FileLayout& file) {
                                 return std::find(options.only.begin(), options.only.end(),
                                                  checkpoint::FileKindName(file.kind)) ==
                                        options.only.end();
                               }),
                files.end());
  }
  std::vector<Target> targets;
  for (const FileLayout& file : files) {
    LTX_ASSIGN_OR_RETURN(Target target, TargetOf(file, options));
    std::printf("%-18s %14lld bytes %6zu tensors  %s\n",
                std::string(checkpoint::FileKindName(file.kind)).c_str(),
                static_cast<long long>(FileBytes(file, options.write)),
                file.tensors.size() + file.texts.size(), target.path.c_str());
    targets.push_back(std::move(target));
  }
  if (options.list) return absl::OkStatus();
  LTX_RETURN_IF_ERROR(WriteManifest(options));
  // All files at once: the kernel lets one thread at a time write to a file.
  std::vector<absl::Status> results(files.size());
  std::vector<std::thread> writers;
  for (size_t i = 0; i < files.size(); ++i) {
    writers.emplace_back([&, i] { results[i] = WriteFile(files[i], targets[i], options.write); });
  }
  for (std::thread& writer : writers) writer.join();
  for (const absl::Status& result : results) LTX_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  const std::vector<std::string> kinds = {"transformer", "text_encoder",      "video_vae",
                                          "audio_vae",   "spatial_upsampler", "duration_head"};
  CLI::App app("Writes a checkpoint set of random weights in the official layout.",
               "make_checkpoint");
  app.add_option("--output", options.output, "Folder of the set")->required();
  app.add_option("--scale", options.scale, "full: the published size; tiny: for tests")
      ->check(CLI::IsMember({"full", "tiny"}))
      ->capture_default_str();
  app.add_option("--version", options.version, "Of LTX: the model the files are in the form of")
      ->check(CLI::IsMember({"2.3", "2.5"}))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Blocks of the transformer; 0: those of the scale")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--text-layers", options.text_layers,
                 "Layers of the text tower; 0: those of the scale")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--only", options.only, "Kind of file to write; may be given several times")
      ->check(CLI::IsMember(kinds));
  app.add_option("--place", options.places,
                 "KIND=FOLDER: write the file of a kind there and leave a link in the set; may be "
                 "given several times");
  app.add_option("--seed", options.write.seed, "Other seeds give other values")
      ->check(CLI::Range(uint64_t{0}, uint64_t{0xffffffff}))
      ->capture_default_str();
  app.add_option("--threads", options.write.threads, "For each file; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--list", options.list, "Tell files and sizes and write nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "make_checkpoint: %s (see --help)\n", error.what());
    return 2;
  }
  if (const absl::Status status = Run(options); !status.ok()) {
    std::fprintf(stderr, "make_checkpoint: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ltx::random_model

int main(int argc, char** argv) { return ltx::random_model::Main(argc, argv); }
