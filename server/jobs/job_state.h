#ifndef LTX_SERVER_JOBS_JOB_STATE_H_
#define LTX_SERVER_JOBS_JOB_STATE_H_

#include "proto/ltx/v1/job_service.pb.h"

namespace ltx::server {

/// Nothing changes any more.
constexpr bool IsOver(v1::JobState state) {
  return state != v1::JOB_STATE_UNSPECIFIED && state != v1::JOB_STATE_QUEUED &&
         state != v1::JOB_STATE_RUNNING;
}

/// The states of a job and the ways between them:
///
///   QUEUED -> RUNNING -> SUCCEEDED | FAILED | CANCELLED
///          -> REFUSED | CANCELLED
///          -> FAILED                  (only by a crash of the server: LOST)
constexpr bool MayFollow(v1::JobState from, v1::JobState to) {
  switch (from) {
    case v1::JOB_STATE_UNSPECIFIED:
      return to == v1::JOB_STATE_QUEUED;
    case v1::JOB_STATE_QUEUED:
      return to == v1::JOB_STATE_RUNNING || to == v1::JOB_STATE_REFUSED ||
             to == v1::JOB_STATE_CANCELLED || to == v1::JOB_STATE_FAILED;
    case v1::JOB_STATE_RUNNING:
      return to == v1::JOB_STATE_SUCCEEDED || to == v1::JOB_STATE_FAILED ||
             to == v1::JOB_STATE_CANCELLED;
    default:
      return false;
  }
}

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_JOB_STATE_H_
