#ifndef LTX_SERVER_PLAN_MAPPING_H_
#define LTX_SERVER_PLAN_MAPPING_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/governor/governor.h"

namespace ltx::server {

/// Between the wire's messages and the governor's structs.

/// The lease that a request asks for. INVALID_ARGUMENT (LEASE) for limits that are not positive.
absl::StatusOr<Lease> LeaseFromWire(const v1::GenerateVideoRequest& request, absl::Time deadline,
                                    absl::Time now);

v1::PlanResponse ToWire(const GovernorPlan& plan, const RungLadder& ladder, const Supply& supply);

}  // namespace ltx::server

#endif  // LTX_SERVER_PLAN_MAPPING_H_
