#include "engine/media/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace ltx::media {
namespace {

absl::Status FromErrno(int error, absl::string_view what, absl::string_view path) {
  const std::string text = absl::StrCat(what, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(text);
    case EISDIR:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(text);
    default:
      return absl::InternalError(text);
  }
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(absl::string_view path) {
  std::string final_path(path);
  struct stat info;
  if (final_path.empty()) return absl::InvalidArgumentError("the output path is empty");
  if (stat(final_path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return FromErrno(EISDIR, "cannot write", final_path);
  }
  // The process id and a clock make a name that no other writer holds; O_EXCL settles the rest.
  for (int attempt = 0;; ++attempt) {
    const std::string temporary =
        absl::StrCat(final_path, ".part-", getpid(), "-", absl::GetCurrentTimeNanos());
    const int descriptor = open(temporary.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor >= 0) return AtomicFile(std::move(final_path), temporary, descriptor);
    if (errno != EEXIST || attempt == 16) return FromErrno(errno, "cannot write", final_path);
  }
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int descriptor)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    Discard();
    path_ = std::move(other.path_);
    temporary_path_ = std::move(other.temporary_path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_path_.c_str());
  descriptor_ = -1;
}

absl::Status AtomicFile::Write(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FromErrno(errno, "cannot write", temporary_path_);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit(Durability durability) {
  if (descriptor_ < 0) return absl::FailedPreconditionError("the file was committed before");
  const bool on_disk = durability == Durability::kOnDisk;
  if (on_disk && fsync(descriptor_) != 0) return FromErrno(errno, "cannot flush", temporary_path_);
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return FromErrno(errno, "cannot rename to", path_);
  }
  close(descriptor_);
  descriptor_ = -1;
  if (!on_disk) return absl::OkStatus();
  // The rename itself must survive a power cut. Some file systems cannot sync a folder; the file is
  // whole either way.
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

}  // namespace ltx::media
