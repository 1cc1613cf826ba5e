#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/video_client.h"
#include "engine/media/sha256.h"
#include "kernels/status_macros.h"

namespace ltx::client {
namespace {

/// As the server sends media: small against message limits, large against the cost of a message.
constexpr size_t kChunkBytes = size_t{256} * 1024;

void SetDeadline(absl::Duration timeout, grpc::ClientContext* context) {
  if (timeout != absl::InfiniteDuration()) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
}

}  // namespace

absl::StatusOr<v1::ConditionResponse> VideoClient::Upload(v1::ConditionHeader header,
                                                          absl::string_view content,
                                                          absl::Duration timeout) {
  header.set_total_bytes(static_cast<int64_t>(content.size()));
  header.set_sha256(media::Sha256Of(content));
  grpc::ClientContext context;
  SetDeadline(timeout, &context);
  v1::ConditionResponse response;
  const auto writer = stub_->Condition(&context, &response);
  v1::ConditionRequest message;
  *message.mutable_header() = std::move(header);
  // A write that fails means that the server has ended the call: Finish() tells why.
  bool open = writer->Write(message);
  for (size_t at = 0; open && at < content.size(); at += kChunkBytes) {
    const absl::string_view chunk = content.substr(at, kChunkBytes);
    message.set_data(chunk.data(), chunk.size());
    open = writer->Write(message);
  }
  writer->WritesDone();
  LTX_RETURN_IF_ERROR(FromWire(writer->Finish()));
  return response;
}

absl::StatusOr<v1::ConditionResponse> VideoClient::UploadFile(const std::string& path,
                                                              v1::ConditionKind kind,
                                                              absl::Duration timeout) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  // An empty file leaves the stream failed, but not bad.
  if (!file.is_open() || file.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  v1::ConditionHeader header;
  header.set_kind(kind);
  header.set_name(path.substr(path.rfind('/') + 1));
  return Upload(std::move(header), content.str(), timeout);
}

absl::StatusOr<v1::ConditionResponse> VideoClient::UploadPrompt(const std::string& prompt,
                                                                absl::Duration timeout) {
  v1::ConditionHeader header;
  header.set_kind(v1::CONDITION_KIND_PROMPT);
  return Upload(std::move(header), prompt, timeout);
}

absl::Status VideoClient::DeleteCondition(const std::string& handle, absl::Duration timeout) {
  grpc::ClientContext context;
  SetDeadline(timeout, &context);
  v1::DeleteConditionRequest request;
  request.set_handle(handle);
  v1::DeleteConditionResponse response;
  return FromWire(stub_->DeleteCondition(&context, request, &response));
}

}  // namespace ltx::client
