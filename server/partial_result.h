#ifndef LTX_SERVER_PARTIAL_RESULT_H_
#define LTX_SERVER_PARTIAL_RESULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/shape.h"

namespace ltx::server {

/// The ending that is put behind a path of a clip for what there is of it.
inline constexpr char kPartialEnding[] = ".partial.safetensors";

struct NamedValues {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

/// Writes a safetensors file of f32 tensors, whole or not at all, and returns its size. `metadata`
/// goes into its header. Errors are those of media::AtomicFile.
absl::StatusOr<int64_t> WritePartialResult(const std::string& path,
                                           absl::Span<const NamedValues> tensors,
                                           const std::map<std::string, std::string>& metadata);

}  // namespace ltx::server

#endif  // LTX_SERVER_PARTIAL_RESULT_H_
