#include "server/wire_status.h"

#include <grpcpp/support/error_details.h>

#include <optional>
#include <string>

#include "engine/pipeline/error_details.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/reasons.h"
#include "server/rpc_details.h"

namespace ltx::server {
namespace {

constexpr char kDomain[] = "ltx-server";
/// Status messages travel in headers, which intermediaries commonly limit to 8 KiB in all.
constexpr size_t kMaxMessageBytes = 1024;

std::string Shortened(absl::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  size_t end = kMaxMessageBytes;
  // Not inside a UTF-8 sequence: a header with half a character is dropped whole.
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return std::string(message.substr(0, end)) + "...";
}

/// Field values come from the user and may hold anything; protobuf strings must be UTF-8.
std::string Printable(absl::string_view text) {
  std::string clean = Shortened(text);
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) >= 0x80 || static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return clean;
}

}  // namespace

std::optional<pipeline::ErrorDetail> WireDetail(const absl::Status& status) {
  std::optional<pipeline::ErrorDetail> detail = pipeline::GetErrorDetail(status);
  if (!detail.has_value() && absl::IsResourceExhausted(status)) {
    detail = pipeline::ErrorDetail{std::string(kReasonDeviceMemory), "", "", ""};
  }
  return detail;
}

grpc::Status ToWire(const absl::Status& status, absl::Duration retry_after) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(Shortened(status.message()));
  const std::optional<pipeline::ErrorDetail> detail = WireDetail(status);
  if (detail.has_value()) {
    google::rpc::ErrorInfo info;
    info.set_reason(detail->reason);
    info.set_domain(kDomain);
    const auto add = [&info](const char* key, const std::string& value) {
      if (!value.empty()) (*info.mutable_metadata())[key] = Printable(value);
    };
    add("field", detail->field);
    add("value", detail->value);
    add("legal", detail->legal);
    details.add_details()->PackFrom(info);
    if (!detail->field.empty()) {
      google::rpc::BadRequest bad_request;
      google::rpc::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
      violation->set_field(detail->field);
      violation->set_description(Shortened(status.message()));
      details.add_details()->PackFrom(bad_request);
    }
  }
  AppendRpcDetails(status, &details);
  if (retry_after > absl::ZeroDuration()) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(retry_after) + 1);
    details.add_details()->PackFrom(retry);
  }
  grpc::Status wire;
  grpc::SetErrorDetails(details, &wire);
  return wire;
}

}  // namespace ltx::server
