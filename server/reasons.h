#ifndef LTX_SERVER_REASONS_H_
#define LTX_SERVER_REASONS_H_

#include "absl/strings/string_view.h"

namespace ltx::server {

/// Reasons that only the service knows, beside those of engine/pipeline/error_details.h.
inline constexpr absl::string_view kReasonQueueFull = "QUEUE_FULL";
inline constexpr absl::string_view kReasonDraining = "DRAINING";
/// The job did not start within the time it may wait.
inline constexpr absl::string_view kReasonQueueTimeout = "QUEUE_TIMEOUT";
/// An output path outside the configured roots, or of the wrong kind.
inline constexpr absl::string_view kReasonOutputPath = "OUTPUT_PATH";
/// The finished clip is black, frozen or noise.
inline constexpr absl::string_view kReasonDegenerateOutput = "DEGENERATE_OUTPUT";
/// The device ran out of memory while the job ran.
inline constexpr absl::string_view kReasonDeviceMemory = "DEVICE_OOM";

/// No uploaded material under that handle: never there, deleted, expired or evicted.
inline constexpr absl::string_view kReasonConditionNotFound = "CONDITION_NOT_FOUND";
/// No room for an upload, or too many at once.
inline constexpr absl::string_view kReasonConditionStoreFull = "CONDITION_STORE_FULL";
/// An upload that does not keep the protocol, or is not what its header announced.
inline constexpr absl::string_view kReasonConditionUpload = "CONDITION_UPLOAD";
/// A tenant wants more than its share.
inline constexpr absl::string_view kReasonTenantQuota = "TENANT_QUOTA";

}  // namespace ltx::server

#endif  // LTX_SERVER_REASONS_H_
