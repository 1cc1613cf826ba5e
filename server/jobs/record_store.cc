#include "server/jobs/record_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/media/atomic_file.h"
#include "google/protobuf/util/json_util.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

/// Far above any record: a request's prompt and some hundred events.
constexpr std::uintmax_t kMaxRecordBytes = std::uintmax_t{64} << 20;

/// An empty string if `text` is a record of the job that the file's name tells, else why not.
std::string Parse(const std::string& text, const std::string& name, JobRecord* record) {
  google::protobuf::util::JsonParseOptions options;
  // Written by a newer server.
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, record, options);
  if (!parsed.ok()) return absl::StrCat("no job record: ", parsed.ToString());
  if (absl::StrCat(record->job().job_id(), ".json") != name) {
    return absl::StrCat("the record of job \"", record->job().job_id(), "\"");
  }
  return "";
}

}  // namespace

absl::Status RecordStore::Save(const JobRecord& record) const {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = true;
  const auto printed = google::protobuf::util::MessageToJsonString(record, &text, options);
  if (!printed.ok()) return absl::InternalError(printed.ToString());
  LTX_ASSIGN_OR_RETURN(media::AtomicFile file,
                       media::AtomicFile::Create(PathFor(record.job().job_id())));
  LTX_RETURN_IF_ERROR(
      file.Write(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  return file.Commit();
}

void RecordStore::Remove(const std::string& job_id) const { unlink(PathFor(job_id).c_str()); }

RecordStore::Contents RecordStore::Load() const {
  Contents contents;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (!entry.is_regular_file(ignored)) continue;
    if (absl::StrContains(name, ".part-")) {
      std::filesystem::remove(entry.path(), ignored);
      continue;
    }
    const auto refuse = [&](const std::string& why) {
      contents.warnings.push_back(absl::StrCat(entry.path().string(), ": ", why));
    };
    const std::uintmax_t size = entry.file_size(ignored);
    if (size > kMaxRecordBytes) {
      refuse(absl::StrCat(size, " bytes are too many for a job record"));
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    JobRecord record;
    const std::string problem = Parse(text.str(), name, &record);
    if (problem.empty()) {
      contents.records.push_back(std::move(record));
    } else {
      refuse(problem);
    }
  }
  std::sort(contents.records.begin(), contents.records.end(),
            [](const JobRecord& a, const JobRecord& b) { return a.sequence() < b.sequence(); });
  return contents;
}

}  // namespace ltx::server
