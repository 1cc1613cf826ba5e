#include "server/rpc_details.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

namespace ltx::server {
namespace {

constexpr absl::string_view kTypePrefix = "type.googleapis.com/google.rpc.";

}  // namespace

void AttachRpcDetail(const google::protobuf::Message& detail, absl::Status* status) {
  status->SetPayload(absl::StrCat("type.googleapis.com/", detail.GetDescriptor()->full_name()),
                     absl::Cord(detail.SerializeAsString()));
}

void AttachQuotaFailure(const std::string& subject, const std::string& description,
                        absl::Status* status) {
  google::rpc::QuotaFailure quota;
  google::rpc::QuotaFailure::Violation* const violation = quota.add_violations();
  violation->set_subject(subject);
  violation->set_description(description);
  AttachRpcDetail(quota, status);
}

void AppendRpcDetails(const absl::Status& status, google::rpc::Status* wire) {
  status.ForEachPayload([wire](absl::string_view type, const absl::Cord& payload) {
    if (!absl::StartsWith(type, kTypePrefix)) return;
    google::protobuf::Any* const any = wire->add_details();
    any->set_type_url(std::string(type));
    any->set_value(std::string(payload));
  });
}

}  // namespace ltx::server
