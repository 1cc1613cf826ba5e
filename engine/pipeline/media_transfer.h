#ifndef LTX_ENGINE_PIPELINE_MEDIA_TRANSFER_H_
#define LTX_ENGINE_PIPELINE_MEDIA_TRANSFER_H_

#include "absl/status/status.h"
#include "kernels/device.h"

namespace ltx::pipeline {

/// Copies the elements of `source` into `target`, which has the same shape and dtype and may be a
/// view into something larger. Goes through the host: what it moves is on its way to an encoder.
absl::Status CopyInto(Device& device, const Tensor& source, const Tensor& target);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_MEDIA_TRANSFER_H_
