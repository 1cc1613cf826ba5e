#ifndef LTX_SERVER_RPC_DETAILS_H_
#define LTX_SERVER_RPC_DETAILS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "google/rpc/status.pb.h"

namespace ltx::server {

/// google.rpc messages carried by an absl::Status, beside what engine/pipeline/error_details.h puts
/// there; ToWire() sends them along.

/// Puts `detail` (QuotaFailure, ResourceInfo, ...) into the status, in the place of an earlier one
/// of its type. Must not be OK.
void AttachRpcDetail(const google::protobuf::Message& detail, absl::Status* status);
/// QuotaFailure of one budget, e.g. "queue/batch".
void AttachQuotaFailure(const std::string& subject, const std::string& description,
                        absl::Status* status);

/// Appends what AttachRpcDetail() has put there.
void AppendRpcDetails(const absl::Status& status, google::rpc::Status* wire);

}  // namespace ltx::server

#endif  // LTX_SERVER_RPC_DETAILS_H_
