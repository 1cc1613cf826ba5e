#include "server/governor/cost_file.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/media/atomic_file.h"
#include "kernels/status_macros.h"
#include "proto/ltx/version.h"

namespace ltx::server {
namespace {

/// Some hundred shapes make a few tens of KiB.
constexpr int64_t kMostBytes = int64_t{1} << 20;

/// FNV-1a: a name for files, the same in every process.
uint64_t Fingerprint(absl::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

std::string Describe(const std::shared_ptr<const checkpoint::SafetensorsFile>& file) {
  if (file == nullptr) return "";
  uint64_t header = Fingerprint("");
  for (const auto& [name, entry] : file->entries()) {
    header =
        Fingerprint(absl::StrCat(name, entry.shape.ToString(), DTypeName(entry.dtype)), header);
  }
  return absl::StrFormat("%d:%016x ", file->file_bytes(), header);
}

/// Size and time of the running program.
std::string Build() {
  struct stat info {};
  if (stat("/proc/self/exe", &info) != 0) return std::string(kVersion);
  return absl::StrCat(std::string(kVersion), " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

}  // namespace

std::string CostIdentity(const pipeline::Model& model, const checkpoint::ModelSet& files) {
  std::string identity = absl::StrCat(
      "build ", Build(), "; device ", model.device().name(), " ", model.device().description(),
      "; dtype ", std::string(DTypeName(model.compute_dtype())), "; model ", model.name(), " ",
      model.version(), " ", checkpoint::ModelKindName(model.kind()), " ");
  for (const auto& file : {files.transformer_file, files.video_vae_file, files.audio_vae_file}) {
    absl::StrAppend(&identity, Describe(file));
  }
  if (files.spatial_upsampler.has_value()) {
    absl::StrAppend(&identity, Describe(files.spatial_upsampler->file));
  }
  return identity;
}

CostFile::CostFile(const std::string& folder, std::string identity)
    : identity_(std::move(identity)),
      path_(absl::StrFormat("%s/costs-%016x.json", folder, Fingerprint(identity_))) {}

absl::StatusOr<std::string> CostFile::Load() const {
  struct stat info {};
  if (stat(path_.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("no measured costs in ", path_));
  }
  const auto bad = [this](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
  };
  if (!S_ISREG(info.st_mode) || info.st_size > kMostBytes) {
    return bad("not a file of at most 1 MiB");
  }
  std::ifstream file(path_, std::ios::binary);
  std::string text(info.st_size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return bad("cannot be read");
  }
  const std::string first_line = absl::StrCat(identity_, "\n");
  if (!absl::StartsWith(text, first_line)) {
    return bad("holds the costs of another model, device or build");
  }
  return text.substr(first_line.size());
}

absl::Status CostFile::Save(absl::string_view costs) const {
  LTX_ASSIGN_OR_RETURN(media::AtomicFile file, media::AtomicFile::Create(path_));
  const std::string text = absl::StrCat(identity_, "\n", costs);
  LTX_RETURN_IF_ERROR(
      file.Write(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  return file.Commit();
}

}  // namespace ltx::server
