#ifndef LTX_SERVER_WIRE_STATUS_H_
#define LTX_SERVER_WIRE_STATUS_H_

#include <grpcpp/support/status.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/pipeline/error_details.h"

namespace ltx::server {

/// What machines get to know of a status: the detail that it carries, or reason DEVICE_OOM for a
/// bare RESOURCE_EXHAUSTED, which comes from a device.
std::optional<pipeline::ErrorDetail> WireDetail(const absl::Status& status);

/// The status as it goes over the wire: the same code and message, and google.rpc details from the
/// ErrorDetail that it carries: ErrorInfo (reason, domain "ltx-server", metadata field / value /
/// legal) and, if a field is named, BadRequest. A message above 1 KiB is cut, since headers are
/// limited. `retry_after`, if positive, adds RetryInfo.
grpc::Status ToWire(const absl::Status& status, absl::Duration retry_after = absl::ZeroDuration());

}  // namespace ltx::server

#endif  // LTX_SERVER_WIRE_STATUS_H_
