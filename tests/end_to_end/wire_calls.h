#ifndef LTX_TESTS_END_TO_END_WIRE_CALLS_H_
#define LTX_TESTS_END_TO_END_WIRE_CALLS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/job_service.pb.h"
#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::testing {

/// The service seen without the client library: what exactly is on the wire.

/// How a call ended, with the google.rpc details of the trailer.
struct WireError {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
  std::string reason;
  std::string domain;
  /// Of ErrorInfo's metadata.
  std::string value;
  std::string legal;
  /// Of the one violation in BadRequest; empty if there is none.
  std::string field;
  std::string description;
  /// Of RetryInfo; 0 if there is none.
  int64_t retry_seconds = 0;
  /// Of the one violation in QuotaFailure, and of ResourceInfo.
  std::string quota_subject;
  std::string resource_name;
  /// Kinds of details that came besides ErrorInfo: "BadRequest", ...
  std::set<std::string> details;
};

struct WireStream {
  std::vector<v1::GenerateVideoEvent> events;
  WireError error;
};

/// Calls GenerateVideo and reads to the end.
WireStream CallGenerate(const std::string& address, const v1::GenerateVideoRequest& request);

/// Calls WatchJob and reads to the end.
WireStream CallWatch(const std::string& address, const v1::WatchJobRequest& request);

/// Calls GetJob.
WireError CallGetJob(const std::string& address, const std::string& job_id,
                     const std::map<std::string, std::string>& metadata = {});

/// Calls Condition with one message of data, and no header.
WireError CallCondition(const std::string& address);
/// The same with a header first.
WireError CallUpload(const std::string& address, const v1::ConditionHeader& header,
                     const std::string& data);

/// The status that grpc.health.v1.Health/Check answers: 1 is SERVING, 2 NOT_SERVING.
absl::StatusOr<int> CallHealthCheck(const std::string& address, const std::string& service);

/// Names of the services that reflection lists.
absl::StatusOr<std::vector<std::string>> ListServices(const std::string& address);

}  // namespace ltx::testing

#endif  // LTX_TESTS_END_TO_END_WIRE_CALLS_H_
