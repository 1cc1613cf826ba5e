#ifndef LTX_SERVER_JOBS_MEDIA_FILE_H_
#define LTX_SERVER_JOBS_MEDIA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ltx::server {

/// What a finished clip is.
struct MediaInfo {
  /// "video/mp4" or "image/png".
  std::string mime_type;
  int64_t total_bytes = 0;
  /// 32 bytes.
  std::string sha256;
};

/// An open file of a finished clip. It can be read to its end even if its name is gone.
/// Thread-safe.
class MediaFile {
 public:
  /// NOT_FOUND if there is no such file.
  static absl::StatusOr<std::shared_ptr<const MediaFile>> Open(const std::string& path);
  ~MediaFile();
  MediaFile(const MediaFile&) = delete;
  MediaFile& operator=(const MediaFile&) = delete;

  /// Up to `max_bytes` bytes from `offset` on; empty at the end.
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) const;
  /// Reads it all.
  absl::StatusOr<MediaInfo> Measure(std::string mime_type) const;

 private:
  explicit MediaFile(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_MEDIA_FILE_H_
