#ifndef LTX_ENGINE_CHECKPOINT_TEST_FILES_H_
#define LTX_ENGINE_CHECKPOINT_TEST_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

/// A fresh empty folder below the test's temporary folder.
std::string MakeTestFolder(absl::string_view name);
/// Writes a whole file; aborts the test program if it cannot.
void WriteTestFile(const std::string& path, absl::string_view contents);
std::string ReadTestFile(const std::string& path);

/// The bytes of a safetensors file with this header, as it stands, and this data area.
std::string SafetensorsBytes(absl::string_view header, absl::string_view data);

/// Puts together a well-formed safetensors file.
class SafetensorsWriter {
 public:
  /// Starts from an existing file: all its tensors and metadata.
  static SafetensorsWriter Copy(const std::string& path);

  SafetensorsWriter& Metadata(const std::string& key, const std::string& value);
  SafetensorsWriter& JsonMetadata(const std::string& key, const nlohmann::json& value) {
    return Metadata(key, value.dump());
  }
  SafetensorsWriter& RemoveMetadata(const std::string& key);
  SafetensorsWriter& Raw(const std::string& name, DType dtype, const Shape& shape,
                         absl::string_view bytes);
  SafetensorsWriter& Floats(const std::string& name, const Shape& shape,
                            absl::Span<const float> values);
  SafetensorsWriter& BFloat16s(const std::string& name, const Shape& shape,
                               absl::Span<const float> values);
  SafetensorsWriter& Ints(const std::string& name, const Shape& shape,
                          absl::Span<const int64_t> values);
  SafetensorsWriter& Remove(const std::string& name);
  /// Gives a tensor another shape, with zeros for data.
  SafetensorsWriter& Reshape(const std::string& name, const Shape& shape);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::string Bytes() const;
  void WriteTo(const std::string& path) const { WriteTestFile(path, Bytes()); }

 private:
  struct Item {
    DType dtype;
    Shape shape;
    std::string bytes;
  };
  std::map<std::string, Item> items_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_TEST_FILES_H_
