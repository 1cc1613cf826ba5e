#include "server/partial_result.h"

#include "engine/media/atomic_file.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"

namespace ltx::server {
namespace {

/// The format wants the data area aligned like its largest elements.
constexpr size_t kHeaderUnit = 8;

}  // namespace

absl::StatusOr<int64_t> WritePartialResult(const std::string& path,
                                           absl::Span<const NamedValues> tensors,
                                           const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = {{"__metadata__", metadata}};
  int64_t offset = 0;
  for (const NamedValues& tensor : tensors) {
    const int64_t end = offset + static_cast<int64_t>(tensor.values.size() * sizeof(float));
    const auto extents = tensor.shape.dims();
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", std::vector<int64_t>(extents.begin(), extents.end())},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kHeaderUnit - text.size() % kHeaderUnit) % kHeaderUnit, ' ');
  std::string start(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<char>(text.size() >> (8 * i));
  start += text;
  LTX_ASSIGN_OR_RETURN(media::AtomicFile file, media::AtomicFile::Create(path));
  LTX_RETURN_IF_ERROR(file.Write(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(start.data()), start.size())));
  for (const NamedValues& tensor : tensors) {
    LTX_RETURN_IF_ERROR(
        file.Write(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(tensor.values.data()),
                                       tensor.values.size() * sizeof(float))));
  }
  LTX_RETURN_IF_ERROR(file.Commit());
  return static_cast<int64_t>(start.size()) + offset;
}

}  // namespace ltx::server
