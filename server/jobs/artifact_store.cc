#include "server/jobs/artifact_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/media_kind.h"
#include "server/reasons.h"
#include "server/rpc_details.h"

namespace ltx::server {

std::string ArtifactStore::PathFor(const std::string& job_id, absl::string_view mime_type) const {
  return absl::StrCat(options_.folder, "/", job_id, EndingOf(mime_type));
}

absl::StatusOr<MediaInfo> ArtifactStore::Add(const std::string& job_id,
                                             absl::string_view mime_type) {
  Clip clip;
  clip.job_id = job_id;
  clip.path = PathFor(job_id, mime_type);
  clip.pinned = true;
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<const MediaFile> file, MediaFile::Open(clip.path));
  LTX_ASSIGN_OR_RETURN(MediaInfo info, file->Measure(std::string(mime_type)));
  clip.bytes = info.total_bytes;
  if (!options_.keep) {
    unlink(clip.path.c_str());
    clip.file = std::move(file);
  }
  absl::MutexLock lock(&mutex_);
  if (!MakeRoom(clip.bytes)) {
    unlink(clip.path.c_str());
    const int64_t room = options_.quota_bytes - bytes_;
    absl::Status status = pipeline::WithDetail(
        absl::ResourceExhaustedError(absl::StrCat(
            "the clip of ", clip.bytes, " bytes does not fit into the artifact store: ", bytes_,
            " of ", options_.quota_bytes, " bytes hold clips that are still needed")),
        {std::string(kReasonArtifactQuota), "", absl::StrCat(clip.bytes),
         absl::StrCat("at most ", room)});
    AttachQuotaFailure("artifacts/bytes", absl::StrCat("need ", clip.bytes, ", may have ", room),
                       &status);
    return status;
  }
  Insert(std::move(clip));
  return info;
}

void ArtifactStore::Unpin(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = index_.find(job_id);
  if (found != index_.end()) found->second->pinned = false;
}

absl::StatusOr<std::shared_ptr<const MediaFile>> ArtifactStore::Open(
    const std::string& job_id) const {
  std::string path;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = index_.find(job_id);
    if (found != index_.end()) {
      if (found->second->file != nullptr) return found->second->file;
      path = found->second->path;
    }
  }
  if (!path.empty()) {
    absl::StatusOr<std::shared_ptr<const MediaFile>> file = MediaFile::Open(path);
    if (file.ok()) return file;
  }
  return pipeline::WithDetail(
      absl::NotFoundError(absl::StrCat("the clip of job ", job_id, " is not kept any more")),
      {std::string(kReasonArtifactGone), "", "", ""});
}

bool ArtifactStore::Has(const std::string& job_id) const {
  absl::MutexLock lock(&mutex_);
  return index_.contains(job_id);
}

void ArtifactStore::Remove(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = index_.find(job_id);
  if (found != index_.end()) Erase(found->second);
}

int64_t ArtifactStore::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

bool ArtifactStore::Restore(const std::string& job_id, const MediaInfo& info) {
  Clip clip;
  clip.job_id = job_id;
  clip.path = PathFor(job_id, info.mime_type);
  clip.bytes = info.total_bytes;
  struct stat found;
  if (stat(clip.path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) ||
      found.st_size != info.total_bytes) {
    return false;
  }
  absl::MutexLock lock(&mutex_);
  // A quota that is smaller than last time costs the oldest ones.
  if (!MakeRoom(clip.bytes)) return false;
  Insert(std::move(clip));
  return true;
}

void ArtifactStore::RemoveStrangers() {
  absl::MutexLock lock(&mutex_);
  absl::flat_hash_set<std::string> known;
  for (const Clip& clip : clips_) known.insert(clip.path);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error)) {
    if (known.contains(entry.path().string())) continue;
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) std::filesystem::remove(entry.path(), ignored);
  }
}

bool ArtifactStore::MakeRoom(int64_t bytes) {
  for (auto clip = clips_.begin(); clip != clips_.end();) {
    if (bytes_ + bytes <= options_.quota_bytes) break;
    const auto oldest = clip++;
    if (!oldest->pinned) Erase(oldest);
  }
  return bytes_ + bytes <= options_.quota_bytes;
}

void ArtifactStore::Erase(Clips::iterator clip) {
  if (clip->file == nullptr) unlink(clip->path.c_str());
  bytes_ -= clip->bytes;
  index_.erase(clip->job_id);
  clips_.erase(clip);
}

void ArtifactStore::Insert(Clip clip) {
  bytes_ += clip.bytes;
  clips_.push_back(std::move(clip));
  index_[clips_.back().job_id] = std::prev(clips_.end());
}

}  // namespace ltx::server
