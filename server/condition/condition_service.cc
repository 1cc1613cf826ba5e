#include "server/condition/condition_service.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "server/condition/condition_upload.h"
#include "server/reasons.h"
#include "server/scheduler/cancellation.h"

namespace ltx::server {
namespace {

/// How often limits are looked at: fine against upload limits of seconds to minutes.
constexpr absl::Duration kTick = absl::Milliseconds(200);

absl::Status BadReference(const std::string& field, const std::string& value,
                          const std::string& legal) {
  return pipeline::WithDetail(
      absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is not legal; use ", legal)),
      {std::string(pipeline::kReasonUnknownValue), field, value, legal});
}

}  // namespace

ConditionService::ConditionService(Options options, ConditionStore* store)
    : options_(std::move(options)),
      store_(store),
      decoder_([this] { Loop(); }),
      watcher_([this] { Expire(); }) {}

ConditionService::~ConditionService() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (ConditionUpload* const upload : uploads_) upload->EndReading(ShuttingDown());
  }
  decoder_.join();
  watcher_.join();
  // gRPC tells each reactor that it is done; until then they refer to this.
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](std::set<ConditionUpload*>* uploads) { return uploads->empty(); }, &uploads_));
}

grpc::ServerReadReactor<v1::ConditionRequest>* ConditionService::Receive(
    const std::string& tenant, v1::ConditionResponse* response) {
  // Counted before it can end.
  absl::MutexLock lock(&mutex_);
  auto upload = std::make_unique<ConditionUpload>(this, tenant, absl::Now() + options_.upload_limit,
                                                  response);
  uploads_.insert(upload.get());
  return upload.release();
}

void ConditionService::Decode(ConditionUpload* upload) {
  absl::MutexLock lock(&mutex_);
  ready_.push_back(upload);
}

void ConditionService::Forget(ConditionUpload* upload) {
  absl::MutexLock lock(&mutex_);
  uploads_.erase(upload);
}

void ConditionService::Loop() {
  while (true) {
    ConditionUpload* upload;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !ready_.empty();
      };
      mutex_.Await(absl::Condition(&wake));
      if (ready_.empty()) return;
      upload = ready_.front();
      ready_.pop_front();
    }
    upload->Inspect(options_.inspect);
  }
}

void ConditionService::Expire() {
  absl::MutexLock lock(&mutex_);
  const auto stopped = [this] { return stopping_.load(); };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&stopped), kTick)) {
    store_->Sweep();
    const absl::Time now = absl::Now();
    for (ConditionUpload* const upload : uploads_) {
      if (upload->expires() <= now) upload->EndReading(TooSlow());
    }
  }
}

absl::Status ConditionService::TooSlow() const {
  const std::string limit = absl::FormatDuration(options_.upload_limit);
  return pipeline::WithDetail(
      absl::DeadlineExceededError(
          absl::StrCat("the upload, decoding included, took longer than the ", limit,
                       " that the server allows")),
      {std::string(kReasonConditionUpload), "data", "too slow", absl::StrCat("within ", limit)});
}

absl::StatusOr<v1::GenerateVideoRequest> ConditionService::Resolve(
    const std::string& tenant, const v1::GenerateVideoRequest& request) {
  v1::GenerateVideoRequest resolved = request;
  for (int i = 0; i < request.conditions_size(); ++i) {
    const v1::ConditionRef& reference = request.conditions(i);
    const std::string field = absl::StrCat("conditions[", i, "]");
    if (!v1::ConditionRole_IsValid(reference.role()) ||
        reference.role() == v1::CONDITION_ROLE_UNSPECIFIED) {
      return BadReference(absl::StrCat(field, ".role"), absl::StrCat(reference.role()),
                          "frame, reference or source");
    }
    // Not a number fails too.
    if (reference.has_strength() && !(reference.strength() >= 0 && reference.strength() <= 1)) {
      return BadReference(absl::StrCat(field, ".strength"), absl::StrCat(reference.strength()),
                          "0 to 1");
    }
    LTX_ASSIGN_OR_RETURN(const ConditionStore::Entry entry,
                         store_->Find(tenant, reference.handle()));
    if (entry.facts.kind() == v1::CONDITION_KIND_PROMPT) {
      return BadReference(absl::StrCat(field, ".handle"), "a prompt",
                          "an image, a video or a sound; prompts go into prompt_handle");
    }
  }
  if (request.prompt_handle().empty()) return resolved;
  if (!request.prompt().empty()) {
    return BadReference("prompt_handle", "a handle beside a prompt", "one of the two");
  }
  LTX_ASSIGN_OR_RETURN(const ConditionStore::Entry entry,
                       store_->Find(tenant, request.prompt_handle()));
  if (entry.facts.kind() != v1::CONDITION_KIND_PROMPT) {
    return BadReference("prompt_handle", request.prompt_handle(), "the handle of a prompt");
  }
  resolved.set_prompt(std::string(entry.bytes->view()));
  resolved.clear_prompt_handle();
  return resolved;
}

}  // namespace ltx::server
