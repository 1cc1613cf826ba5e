#include "engine/checkpoint/inspect.h"

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/stored_form.h"
#include "engine/checkpoint/weight_set.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

/// Longest metadata value shown: licences and templates are long, and nobody reads them here.
constexpr size_t kMaxValueShown = 160;

/// "model.diffusion_model" of "model.diffusion_model.patchify_proj.weight"; at most two parts and
/// never the last one.
std::string GroupOf(absl::string_view name) {
  const size_t first = name.find('.');
  if (first == absl::string_view::npos) return std::string(name);
  const size_t second = name.find('.', first + 1);
  return std::string(name.substr(0, second == absl::string_view::npos ? first : second));
}

void CountTensors(const SafetensorsFile& file, CheckpointSummary* summary) {
  for (const auto& [name, entry] : file.entries()) {
    const int64_t elements = entry.shape.num_elements();
    const int64_t bytes = static_cast<int64_t>(entry.bytes.size());
    CheckpointSummary::DTypeUse& use = summary->dtypes[entry.dtype];
    ++use.tensors;
    use.elements += elements;
    use.bytes += bytes;
    if (IsFloat(entry.dtype)) summary->parameters += elements;
    const std::string group = GroupOf(name);
    // Names are sorted, so that a group's tensors stand together.
    if (summary->groups.empty() || summary->groups.back().name != group) {
      summary->groups.push_back({group, 0, 0});
    }
    ++summary->groups.back().tensors;
    summary->groups.back().bytes += bytes;
  }
  summary->tensors = static_cast<int64_t>(file.entries().size());
}

absl::Status CountForms(const std::shared_ptr<const SafetensorsFile>& file,
                        CheckpointSummary* summary) {
  WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(file));
  for (const auto& [name, entry] : file->entries()) {
    if (!absl::EndsWith(name, ".weight")) continue;
    const absl::StatusOr<StoredForm> form = DetectStoredForm(weights, name);
    const bool unsupported = form.status().code() == absl::StatusCode::kUnimplemented;
    const std::string key = form.ok()     ? std::string(StoredFormName(*form))
                            : unsupported ? "unknown marker"
                                          : "malformed";
    ++summary->stored_forms[key];
  }
  return absl::OkStatus();
}

std::string PrettyConfig(const SafetensorsFile& file) {
  const auto text = file.metadata().find("config");
  if (text == file.metadata().end()) return "";
  const absl::StatusOr<nlohmann::json> json = ParseJson(text->second, file.path());
  return json.ok() ? json->dump(2, ' ', true, nlohmann::json::error_handler_t::replace)
                   : text->second;
}

/// Bytes with a unit, three digits.
std::string Size(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (value < 1000.0) break;
    value /= 1000.0;
    unit = next;
  }
  return absl::StrFormat("%.3g %s", value, unit);
}

/// On one line, cut, without control characters.
std::string Shown(absl::string_view text) {
  return absl::StrCat(
      absl::Utf8SafeCHexEscape(text.substr(0, kMaxValueShown)),
      text.size() > kMaxValueShown ? absl::StrCat("... (", text.size(), " bytes)") : "");
}

}  // namespace

absl::StatusOr<CheckpointSummary> InspectCheckpoint(const std::string& path) {
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<const SafetensorsFile> file,
                       SafetensorsFile::Open(path));
  CheckpointSummary summary;
  summary.path = path;
  summary.file_bytes = file->file_bytes();
  summary.kinds = RecogniseFile(*file);
  CountTensors(*file, &summary);
  LTX_RETURN_IF_ERROR(CountForms(file, &summary));
  for (const auto& [key, value] : file->metadata()) {
    if (key != "config") summary.metadata[key] = value;
  }
  summary.config = PrettyConfig(*file);
  return summary;
}

std::string RenderSummary(const CheckpointSummary& summary) {
  std::string text = absl::StrCat("path        ", summary.path, "\n");
  absl::StrAppend(&text, "size        ", summary.file_bytes, " bytes (", Size(summary.file_bytes),
                  ")\n");
  std::vector<std::string> kinds;
  for (const FileKind kind : summary.kinds) kinds.emplace_back(FileKindName(kind));
  absl::StrAppend(&text, "kind        ", kinds.empty() ? "unknown" : absl::StrJoin(kinds, ", "),
                  "\n");
  absl::StrAppend(&text, "tensors     ", summary.tensors, "\n");
  absl::StrAppend(&text, "parameters  ", summary.parameters, "\n");
  for (const auto& [dtype, use] : summary.dtypes) {
    absl::StrAppendFormat(&text, "dtype       %-8s %d tensors, %d elements, %s\n", DTypeName(dtype),
                          use.tensors, use.elements, Size(use.bytes));
  }
  for (const auto& [form, count] : summary.stored_forms) {
    absl::StrAppend(&text, "weights     ", count, " ", form, "\n");
  }
  for (const CheckpointSummary::Group& group : summary.groups) {
    absl::StrAppend(&text, "group       ", Shown(group.name), ": ", group.tensors, " tensors, ",
                    Size(group.bytes), "\n");
  }
  for (const auto& [key, value] : summary.metadata) {
    absl::StrAppend(&text, "metadata    ", Shown(key), ": ", Shown(value), "\n");
  }
  if (summary.config.empty()) {
    absl::StrAppend(&text, "config      none\n");
    return text;
  }
  absl::StrAppend(&text, "config\n");
  for (const absl::string_view line : absl::StrSplit(summary.config, '\n')) {
    std::string clean(line);
    for (char& c : clean) {
      if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
    }
    absl::StrAppend(&text, "  ", clean, "\n");
  }
  return text;
}

}  // namespace ltx::checkpoint
