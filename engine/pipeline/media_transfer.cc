#include "engine/pipeline/media_transfer.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {

absl::Status CopyInto(Device& device, const Tensor& source, const Tensor& target) {
  if (source.shape() != target.shape() || source.dtype() != target.dtype()) {
    return absl::InternalError(
        absl::StrCat("cannot copy ", source.shape().ToString(), " ", DTypeName(source.dtype()),
                     " into ", target.shape().ToString(), " ", DTypeName(target.dtype())));
  }
  if (!device.holds_data()) return absl::OkStatus();
  if (target.host_accessible()) {
    return device.Download(source, absl::MakeSpan(target.data<uint8_t>(), target.num_bytes()));
  }
  std::vector<uint8_t> bytes(source.num_bytes());
  LTX_RETURN_IF_ERROR(device.Download(source, absl::MakeSpan(bytes)));
  return device.Upload(bytes, target);
}

}  // namespace ltx::pipeline
