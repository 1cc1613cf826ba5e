#include "server/condition/condition_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/condition/condition_service.h"
#include "server/reasons.h"
#include "server/scheduler/cancellation.h"
#include "server/wire_status.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kDigestBytes = 32;

absl::Status BadHeader(absl::string_view field, const std::string& value,
                       const std::string& legal) {
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is not legal; use ", legal)),
      {std::string(kReasonConditionUpload), std::string(field), value, legal});
}

absl::Status CheckHeader(const v1::ConditionHeader& header) {
  if (!v1::ConditionKind_IsValid(header.kind())) {
    return BadHeader("header.kind", absl::StrCat(header.kind()),
                     "unspecified, image, video, audio or prompt");
  }
  if (header.name().size() > kMaxNameBytes) {
    return BadHeader("header.name", absl::StrCat(header.name().size(), " bytes"),
                     absl::StrCat("at most ", kMaxNameBytes, " bytes"));
  }
  if (header.total_bytes() < 0) {
    return BadHeader("header.total_bytes", absl::StrCat(header.total_bytes()),
                     "the size, or 0 if it is not known");
  }
  if (!header.sha256().empty() && header.sha256().size() != kDigestBytes) {
    return BadHeader("header.sha256", absl::StrCat(header.sha256().size(), " bytes"),
                     absl::StrCat(kDigestBytes, " bytes, or none"));
  }
  return absl::OkStatus();
}

}  // namespace

ConditionUpload::ConditionUpload(ConditionService* service, std::string tenant, absl::Time expires,
                                 v1::ConditionResponse* response)
    : service_(service), tenant_(std::move(tenant)), expires_(expires), response_(response) {
  StartRead(&message_);
}

absl::Status ConditionUpload::KeepGoing() const {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) return absl::CancelledError("the upload was cancelled");
  if (service_->stopping()) return ShuttingDown();
  if (absl::Now() >= expires_) return service_->TooSlow();
  return absl::OkStatus();
}

absl::Status ConditionUpload::Begin(const v1::ConditionHeader& header) {
  if (upload_ != nullptr)
    return BadHeader("header", "a second header", "one, as the first message");
  LTX_RETURN_IF_ERROR(CheckHeader(header));
  header_ = header;
  LTX_ASSIGN_OR_RETURN(upload_, service_->store().Begin(tenant_, header.total_bytes()));
  return absl::OkStatus();
}

absl::Status ConditionUpload::Take(const v1::ConditionRequest& message) {
  if (message.has_header()) return Begin(message.header());
  if (upload_ == nullptr) return BadHeader("header", "data", "a header as the first message");
  return upload_->Append(message.data());
}

void ConditionUpload::OnReadDone(bool ok) {
  absl::Status status;
  if (ok) {
    status = Take(message_);
  } else if (upload_ == nullptr) {
    status = BadHeader("header", "nothing", "a header as the first message");
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!reading_) return;
    if (status.ok() && ok) {
      StartRead(&message_);
      return;
    }
    reading_ = false;
  }
  if (status.ok()) {
    service_->Decode(this);
  } else {
    End(status);
  }
}

void ConditionUpload::Inspect(const InspectOptions& options) {
  InspectOptions mine = options;
  mine.limits.keep_going = [this] { return KeepGoing(); };
  if (const absl::Status status = KeepGoing(); !status.ok()) return End(status);
  absl::StatusOr<v1::ConditionResponse> facts = InspectContent(upload_->span(), header_, mine);
  if (!facts.ok()) return End(facts.status());
  *response_ = service_->store().Put(std::move(upload_), *std::move(facts));
  spdlog::info("tenant {} holds {}, {} bytes of {}", tenant_, response_->handle(),
               response_->bytes(), response_->format());
  End(absl::OkStatus());
}

void ConditionUpload::EndReading(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(reading_, false)) return;
  }
  End(status);
}

void ConditionUpload::End(const absl::Status& status) {
  if (!status.ok()) spdlog::info("an upload of tenant {} ended: {}", tenant_, status.ToString());
  Finish(ToWire(status));
}

void ConditionUpload::OnCancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
}

void ConditionUpload::OnDone() {
  // Before the service may end: its end is all that the store's waits for.
  upload_.reset();
  service_->Forget(this);
  delete this;
}

}  // namespace ltx::server
