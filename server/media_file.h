#ifndef LTX_SERVER_MEDIA_FILE_H_
#define LTX_SERVER_MEDIA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ltx::server {

/// A finished clip that only this process can see: opened and unlinked, so that it is gone with the
/// last reader, whatever happens. Read from front to back.
class MediaFile {
 public:
  /// Takes over the file at `path` and removes its name. NOT_FOUND / INTERNAL on failure.
  static absl::StatusOr<std::unique_ptr<MediaFile>> TakeOver(const std::string& path,
                                                             std::string mime_type);
  ~MediaFile();
  MediaFile(const MediaFile&) = delete;
  MediaFile& operator=(const MediaFile&) = delete;

  const std::string& mime_type() const { return mime_type_; }
  int64_t total_bytes() const { return total_bytes_; }
  /// 32 bytes.
  const std::string& sha256() const { return sha256_; }

  /// The next `max_bytes` or fewer; empty at the end.
  absl::StatusOr<std::string> Read(int64_t max_bytes);

 private:
  MediaFile(int descriptor, std::string mime_type)
      : descriptor_(descriptor), mime_type_(std::move(mime_type)) {}

  const int descriptor_;
  const std::string mime_type_;
  int64_t total_bytes_ = 0;
  std::string sha256_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_MEDIA_FILE_H_
