#ifndef LTX_ENGINE_CHECKPOINT_SAFETENSORS_H_
#define LTX_ENGINE_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace ltx::checkpoint {

/// A memory-mapped safetensors file. The header is treated as hostile: sizes, offsets, overlaps,
/// dtypes and JSON shape are checked before anything is used, and every refusal names the file and
/// the tensor. Tensor data may lie at any alignment: copy it, never cast a pointer.
class SafetensorsFile {
 public:
  struct Entry {
    DType dtype;
    Shape shape;
    /// The data inside the mapping, valid while the file object lives.
    absl::Span<const uint8_t> bytes;
  };

  /// Copies the bytes from `begin` on of a tensor of this file to `to`, which they must suffice
  /// for, any number of threads at once. For data that is read once: it need not become part of the
  /// mapping, which takes the system as long as the copy itself, and a file that has become shorter
  /// since is DATA_LOSS, where the mapping would end the process.
  virtual absl::Status Read(const Entry& entry, int64_t begin, absl::Span<uint8_t> to) const;

  /// NOT_FOUND if there is no such file, INVALID_ARGUMENT for anything wrong inside it.
  static absl::StatusOr<std::shared_ptr<const SafetensorsFile>> Open(const std::string& path);
  virtual ~SafetensorsFile() = default;

  const std::string& path() const { return path_; }
  /// Bytes of the whole file.
  int64_t file_bytes() const { return file_bytes_; }
  /// Tensors by name.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// The `__metadata__` strings.
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

 protected:
  SafetensorsFile() = default;
  std::string path_;
  int64_t file_bytes_ = 0;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_SAFETENSORS_H_
