#include "tests/golden/golden_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "kernels/status_macros.h"
#include "tests/golden/compare.h"

namespace ltx::golden {
namespace {

namespace fs = std::filesystem;

/// The files of the given paths, folders walked in the order of names.
absl::StatusOr<std::vector<std::string>> CollectFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::exists(path, error)) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": no such file or folder"));
      }
      files.push_back(path);
      continue;
    }
    std::vector<std::string> below;
    fs::recursive_directory_iterator it(path, fs::directory_options::follow_directory_symlink,
                                        error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it->path().extension() == ".safetensors") below.push_back(it->path().string());
    }
    if (error) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.message()));
    }
    std::sort(below.begin(), below.end());
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

bool Selected(absl::string_view component, const std::vector<std::string>& only) {
  if (only.empty()) return true;
  return std::any_of(only.begin(), only.end(), [&](absl::string_view pattern) {
    return absl::EndsWith(pattern, ".*")
               ? absl::StartsWith(component, pattern.substr(0, pattern.size() - 1))
               : component == pattern;
  });
}

/// Runs one case and writes its lines. True if it passed.
bool RunCase(const GoldenCase& golden, const ComponentRegistry& registry,
             const GoldenContext& context, std::ostream& out) {
  const std::string subject = absl::StrCat(golden.component(), " ", golden.path());
  const auto runner = registry.find(golden.component());
  if (runner == registry.end()) {
    out << "FAIL " << subject << " unknown component\n";
    return false;
  }
  GoldenOutputs outputs;
  const absl::Status status = runner->second(golden, context, &outputs);
  if (!status.ok()) {
    out << "FAIL " << subject << " " << status.ToString() << "\n";
    return false;
  }
  const absl::StatusOr<std::vector<OutputComparison>> results = CompareOutputs(golden, outputs);
  if (!results.ok()) {
    out << "FAIL " << subject << " " << results.status().ToString() << "\n";
    return false;
  }
  double rel_l2 = 0.0;
  double max_abs = 0.0;
  const OutputComparison* worst = nullptr;
  bool passed = true;
  for (const OutputComparison& result : *results) {
    passed = passed && result.passed;
    if (result.information_only) continue;
    rel_l2 = std::max(rel_l2, result.rel_l2);
    max_abs = std::max(max_abs, result.max_abs);
    if (worst == nullptr || result.severity > worst->severity) worst = &result;
  }
  out << (passed ? "PASS " : "FAIL ") << subject
      << absl::StrFormat(" rel_l2=%.3g max_abs=%.3g worst=%s\n", rel_l2, max_abs,
                         worst == nullptr ? "-" : worst->name);
  for (const OutputComparison& result : *results) {
    if (!result.passed) out << "     out/" << result.name << ": " << result.message << "\n";
  }
  return passed;
}

}  // namespace

absl::StatusOr<RunSummary> RunCases(const RunOptions& options, const ComponentRegistry& registry,
                                    const GoldenContext& context, std::ostream& out) {
  LTX_ASSIGN_OR_RETURN(const std::vector<std::string> files, CollectFiles(options.paths));
  RunSummary summary;
  for (const std::string& path : files) {
    const auto file = checkpoint::SafetensorsFile::Open(path);
    if (!file.ok()) {
      out << "FAIL ? " << path << " " << file.status().ToString() << "\n";
      ++summary.failed;
      continue;
    }
    if (IsModelFile(**file)) {
      ++summary.model_files;
      continue;
    }
    const std::string& component = (*file)->metadata().find("component")->second;
    if (!Selected(component, options.only)) {
      ++summary.filtered;
      continue;
    }
    const absl::StatusOr<GoldenCase> golden = GoldenCase::Load(path);
    if (!golden.ok()) {
      out << "FAIL " << component << " " << path << " " << golden.status().ToString() << "\n";
      ++summary.failed;
      continue;
    }
    ++(RunCase(*golden, registry, context, out) ? summary.passed : summary.failed);
    out.flush();
  }
  return summary;
}

std::vector<std::string> ParseComponentList(absl::string_view text) {
  std::vector<std::string> names;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view name =
        absl::StripAsciiWhitespace(line.substr(0, std::min(line.find('#'), line.size())));
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

}  // namespace ltx::golden
