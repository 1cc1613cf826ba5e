#include "server/jobs/media_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/media/sha256.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

/// Large enough that hashing, not system calls, takes the time.
constexpr int64_t kHashBlockBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::shared_ptr<const MediaFile>> MediaFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  return std::shared_ptr<const MediaFile>(new MediaFile(descriptor));
}

MediaFile::~MediaFile() { close(descriptor_); }

absl::StatusOr<std::string> MediaFile::Read(int64_t offset, int64_t max_bytes) const {
  std::string block(max_bytes, '\0');
  ssize_t count;
  do {
    count = pread(descriptor_, block.data(), block.size(), offset);
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return absl::InternalError(absl::StrCat("cannot read the clip: ", std::strerror(errno)));
  }
  block.resize(count);
  return block;
}

absl::StatusOr<MediaInfo> MediaFile::Measure(std::string mime_type) const {
  MediaInfo info;
  info.mime_type = std::move(mime_type);
  media::Sha256 digest;
  while (true) {
    LTX_ASSIGN_OR_RETURN(const std::string block, Read(info.total_bytes, kHashBlockBytes));
    if (block.empty()) break;
    digest.Add(block);
    info.total_bytes += static_cast<int64_t>(block.size());
  }
  info.sha256 = digest.Finish();
  return info;
}

}  // namespace ltx::server
