#ifndef LTX_CLIENT_PLAN_TABLE_H_
#define LTX_CLIENT_PLAN_TABLE_H_

#include <string>

#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::client {

/// A plan for people: verdict, a table of phases with time and memory, what is allowed and by whom.
std::string PlanText(const v1::PlanResponse& plan);

/// The rungs of a server, one a line, with projected and allowed time and memory.
std::string RungsText(const v1::ListRungsResponse& rungs);

}  // namespace ltx::client

#endif  // LTX_CLIENT_PLAN_TABLE_H_
