#ifndef LTX_SERVER_REASONS_H_
#define LTX_SERVER_REASONS_H_

#include "absl/strings/string_view.h"

namespace ltx::server {

/// Reasons that only the service knows, beside those of engine/pipeline/error_details.h.
inline constexpr absl::string_view kReasonQueueFull = "QUEUE_FULL";
inline constexpr absl::string_view kReasonDraining = "DRAINING";
/// The job did not start within the time it may wait.
inline constexpr absl::string_view kReasonQueueTimeout = "QUEUE_TIMEOUT";
/// The server ended while the job was not over.
inline constexpr absl::string_view kReasonLost = "LOST";
/// There is no job of that id, or none any more.
inline constexpr absl::string_view kReasonJobUnknown = "JOB_UNKNOWN";
/// The key stands for a job with another request.
inline constexpr absl::string_view kReasonRequestIdReused = "REQUEST_ID_REUSED";
/// The clip made room for newer ones, or does not fit.
inline constexpr absl::string_view kReasonArtifactGone = "ARTIFACT_GONE";
inline constexpr absl::string_view kReasonArtifactQuota = "ARTIFACT_QUOTA";
/// An output path outside the configured roots, or of the wrong kind.
inline constexpr absl::string_view kReasonOutputPath = "OUTPUT_PATH";
/// The finished clip is black, frozen or noise.
inline constexpr absl::string_view kReasonDegenerateOutput = "DEGENERATE_OUTPUT";
/// The device ran out of memory while the job ran.
inline constexpr absl::string_view kReasonDeviceMemory = "DEVICE_OOM";
/// A limit of the lease that is no positive number.
inline constexpr absl::string_view kReasonLease = "LEASE";
/// The governor's refusals: the clip is larger than every rung; its projected memory or time is
/// above what its rung, its lease or the device allows; it cannot be done by its deadline.
inline constexpr absl::string_view kReasonNoRung = "RUNG_EXCEEDED";
inline constexpr absl::string_view kReasonMemoryProjection = "MEMORY_PROJECTION_EXCEEDS_BUDGET";
inline constexpr absl::string_view kReasonTimeProjection = "TIME_PROJECTION_EXCEEDS_LEASE";
inline constexpr absl::string_view kReasonDeadlineProjection = "DEADLINE_CANNOT_BE_MET";
/// Not a refusal: it fits, but not beside the jobs that have the memory now.
inline constexpr absl::string_view kReasonMemoryHeld = "MEMORY_HELD_BY_OTHERS";

/// No uploaded material under that handle: never there, deleted, expired or evicted.
inline constexpr absl::string_view kReasonConditionNotFound = "CONDITION_NOT_FOUND";
/// No room for an upload, or too many at once.
inline constexpr absl::string_view kReasonConditionStoreFull = "CONDITION_STORE_FULL";
/// An upload that does not keep the protocol, or is not what its header announced.
inline constexpr absl::string_view kReasonConditionUpload = "CONDITION_UPLOAD";
/// A call without a token, with one that nobody has, or of one tenant in the name of another.
inline constexpr absl::string_view kReasonTokenMissing = "TOKEN_MISSING";
inline constexpr absl::string_view kReasonTokenUnknown = "TOKEN_UNKNOWN";
inline constexpr absl::string_view kReasonTenantMismatch = "TENANT_MISMATCH";
/// A tenant wants more than its share.
inline constexpr absl::string_view kReasonTenantQuota = "TENANT_QUOTA";

}  // namespace ltx::server

#endif  // LTX_SERVER_REASONS_H_
