#include "tests/end_to_end/wire_calls.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/status_macros.h"
#include "proto/ltx/v1/job_service.grpc.pb.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"
#include "tests/end_to_end/limit.h"

namespace ltx::testing {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
}

void SetLimit(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
}

WireError FromStatus(const grpc::Status& status) {
  WireError error;
  error.code = static_cast<absl::StatusCode>(status.error_code());
  error.message = status.error_message();
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return error;
  for (const google::protobuf::Any& any : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad_request;
    google::rpc::RetryInfo retry;
    google::rpc::QuotaFailure quota;
    google::rpc::ResourceInfo resource;
    if (!any.Is<google::rpc::ErrorInfo>()) {
      error.details.insert(any.type_url().substr(any.type_url().rfind('.') + 1));
    }
    if (any.UnpackTo(&info)) {
      error.reason = info.reason();
      error.domain = info.domain();
      const auto& metadata = info.metadata();
      if (const auto value = metadata.find("value"); value != metadata.end()) {
        error.value = value->second;
      }
      if (const auto legal = metadata.find("legal"); legal != metadata.end()) {
        error.legal = legal->second;
      }
    } else if (any.UnpackTo(&bad_request) && bad_request.field_violations_size() == 1) {
      error.field = bad_request.field_violations(0).field();
      error.description = bad_request.field_violations(0).description();
    } else if (any.UnpackTo(&retry)) {
      error.retry_seconds = retry.retry_delay().seconds();
    } else if (any.UnpackTo(&quota) && quota.violations_size() == 1) {
      error.quota_subject = quota.violations(0).subject();
    } else if (any.UnpackTo(&resource)) {
      error.resource_name = resource.resource_name();
    }
  }
  return error;
}

WireError SendUpload(const std::string& address,
                     const std::vector<v1::ConditionRequest>& messages) {
  const auto stub = v1::VideoService::NewStub(Connect(address));
  grpc::ClientContext context;
  SetLimit(&context);
  v1::ConditionResponse response;
  const auto writer = stub->Condition(&context, &response);
  // Fails if the server has answered already.
  for (const v1::ConditionRequest& message : messages) writer->Write(message);
  writer->WritesDone();
  return FromStatus(writer->Finish());
}

/// The health and reflection services have no generated code in the distribution's packages; their
/// messages are a field or two, so they are put together and read as unknown fields.
grpc::ByteBuffer OneString(int field, const std::string& text) {
  UnknownFieldSet fields;
  fields.AddLengthDelimited(field, text);
  std::string bytes;
  fields.SerializeToString(&bytes);
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

/// Values of a field of strings or messages.
absl::StatusOr<std::vector<std::string>> Texts(const std::string& message, int number) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(message)) return absl::InternalError("not a message");
  std::vector<std::string> found;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      found.push_back(field.length_delimited());
    }
  }
  return found;
}

/// One call with one message each way, of a unary or streaming method.
absl::StatusOr<std::string> CallOnce(const std::string& address, const std::string& method,
                                     const grpc::ByteBuffer& request) {
  grpc::GenericStub stub(Connect(address));
  grpc::ClientContext context;
  SetLimit(&context);
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  bool answered = false;
  call->StartCall(nullptr);
  if (wait()) {
    call->Write(request, nullptr);
    if (wait()) {
      call->WritesDone(nullptr);
      wait();
      call->Read(&response, nullptr);
      answered = wait();
    }
  }
  call->Finish(&status, nullptr);
  wait();
  queue.Shutdown();
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  if (!answered) return absl::InternalError("no answer");
  return BytesOf(response);
}

}  // namespace

WireStream CallGenerate(const std::string& address, const v1::GenerateVideoRequest& request) {
  const auto stub = v1::VideoService::NewStub(Connect(address));
  grpc::ClientContext context;
  SetLimit(&context);
  WireStream stream;
  const auto reader = stub->GenerateVideo(&context, request);
  for (v1::GenerateVideoEvent event; reader->Read(&event);) stream.events.push_back(event);
  stream.error = FromStatus(reader->Finish());
  return stream;
}

WireStream CallWatch(const std::string& address, const v1::WatchJobRequest& request) {
  const auto stub = v1::JobService::NewStub(Connect(address));
  grpc::ClientContext context;
  SetLimit(&context);
  WireStream stream;
  const auto reader = stub->WatchJob(&context, request);
  for (v1::GenerateVideoEvent event; reader->Read(&event);) stream.events.push_back(event);
  stream.error = FromStatus(reader->Finish());
  return stream;
}

WireError CallGetJob(const std::string& address, const std::string& job_id,
                     const std::map<std::string, std::string>& metadata) {
  const auto stub = v1::JobService::NewStub(Connect(address));
  grpc::ClientContext context;
  SetLimit(&context);
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  v1::Job response;
  return FromStatus(stub->GetJob(&context, request, &response));
}

WireError CallCondition(const std::string& address) {
  v1::ConditionRequest request;
  request.set_data("pixels");
  return SendUpload(address, {request});
}

WireError CallUpload(const std::string& address, const v1::ConditionHeader& header,
                     const std::string& data) {
  v1::ConditionRequest first;
  *first.mutable_header() = header;
  v1::ConditionRequest second;
  second.set_data(data);
  return SendUpload(address, {first, second});
}

absl::StatusOr<int> CallHealthCheck(const std::string& address, const std::string& service) {
  constexpr int kServiceField = 1;
  constexpr int kStatusField = 1;
  LTX_ASSIGN_OR_RETURN(const std::string bytes, CallOnce(address, "/grpc.health.v1.Health/Check",
                                                         OneString(kServiceField, service)));
  UnknownFieldSet response;
  if (!response.ParseFromString(bytes)) return absl::InternalError("not a message");
  for (int i = 0; i < response.field_count(); ++i) {
    const UnknownField& field = response.field(i);
    if (field.number() == kStatusField && field.type() == UnknownField::TYPE_VARINT) {
      return static_cast<int>(field.varint());
    }
  }
  return 0;
}

absl::StatusOr<std::vector<std::string>> ListServices(const std::string& address) {
  constexpr int kListServicesField = 7;
  constexpr int kListServicesResponseField = 6;
  constexpr int kServiceField = 1;
  constexpr int kNameField = 1;
  LTX_ASSIGN_OR_RETURN(
      const std::string response,
      CallOnce(address, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               OneString(kListServicesField, "*")));
  std::vector<std::string> names;
  LTX_ASSIGN_OR_RETURN(const std::vector<std::string> lists,
                       Texts(response, kListServicesResponseField));
  for (const std::string& list : lists) {
    LTX_ASSIGN_OR_RETURN(const std::vector<std::string> services, Texts(list, kServiceField));
    for (const std::string& service : services) {
      LTX_ASSIGN_OR_RETURN(const std::vector<std::string> name, Texts(service, kNameField));
      names.insert(names.end(), name.begin(), name.end());
    }
  }
  return names;
}

}  // namespace ltx::testing
