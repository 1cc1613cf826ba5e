#ifndef LTX_ENGINE_MEDIA_ATOMIC_FILE_H_
#define LTX_ENGINE_MEDIA_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::media {

/// What a file that was committed survives.
enum class Durability {
  /// Everything: it is on disk.
  kOnDisk,
  /// The end of this process, not that of the machine: for files that can be made again, and whose
  /// way to the disk is long.
  kWhole,
};

/// A file that appears whole or not at all: it is written beside its final name and renamed when
/// complete. Dropping the object before Commit() removes what was written.
class AtomicFile {
 public:
  /// Creates the temporary file in the folder of `path`. NOT_FOUND if there is no such folder,
  /// PERMISSION_DENIED if it is not writable, INVALID_ARGUMENT if `path` is a folder; each names
  /// the path.
  static absl::StatusOr<AtomicFile> Create(absl::string_view path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_path_; }
  /// Open for reading and writing.
  int descriptor() const { return descriptor_; }

  /// Appends. RESOURCE_EXHAUSTED when the disk is full.
  absl::Status Write(absl::Span<const uint8_t> bytes);
  /// fsync, rename over `path`, fsync of the folder; kWhole: the rename alone.
  absl::Status Commit(Durability durability = Durability::kOnDisk);

 private:
  AtomicFile(std::string path, std::string temporary_path, int descriptor);
  void Discard();

  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;
};

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_ATOMIC_FILE_H_
