#include "server/jobs/job_stream.h"

#include <zlib.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/wire_status.h"

namespace ltx::server {
namespace {

/// Small against gRPC's default message limit of 4 MiB, large against its cost per message.
constexpr int64_t kChunkBytes = int64_t{256} * 1024;
/// Proxies commonly drop a connection after 60 s of silence.
constexpr absl::Duration kHeartbeatPeriod = absl::Seconds(10);

}  // namespace

std::shared_ptr<JobStream> JobStream::Create() {
  std::shared_ptr<JobStream> stream(new JobStream());
  absl::MutexLock lock(&stream->mutex_);
  stream->self_ = stream;
  return stream;
}

void JobStream::Attach(std::shared_ptr<Job> job, Options options) {
  bool gone;
  std::shared_ptr<JobStream> self;
  {
    absl::MutexLock lock(&mutex_);
    next_event_ = std::max<int64_t>(options.from_event, 1);
    offset_ = std::max<int64_t>(options.media_offset, 0);
    options_ = std::move(options);
    job_ = job;
    self = self_;
    gone = broken_ || self == nullptr;
  }
  // The client may have gone before there was anything to leave.
  if (gone) Leave();
  if (self == nullptr) return;
  job->AddWatcher(self);
  OnJobChanged();
}

void JobStream::Refuse(const absl::Status& status, absl::Duration retry_after) {
  absl::MutexLock lock(&mutex_);
  End(ToWire(status, retry_after));
}

void JobStream::Heartbeat(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (ended_ || writing_ || broken_ || now - last_sent_ < kHeartbeatPeriod) return;
  if (last_event_.event_case() == v1::GenerateVideoEvent::EVENT_NOT_SET) return;
  in_flight_ = last_event_;
  Write();
}

void JobStream::OnJobChanged() {
  absl::MutexLock lock(&mutex_);
  if (job_ == nullptr || ended_) return;
  if (!file_.has_value() && job_->over()) OpenClip();
  Advance();
}

void JobStream::OpenClip() {
  clip_ = job_->Clip();
  if (options_.media && !clip_.mime_type.empty()) {
    file_ = job_->OpenClip();
    media_ = Media::kHeader;
  }
}

bool JobStream::TakeMedia() {
  if (media_ == Media::kHeader) {
    v1::MediaHeader* const header = in_flight_.mutable_media_header();
    header->set_mime_type(clip_.mime_type);
    header->set_total_bytes(clip_.total_bytes);
    header->set_sha256(clip_.sha256);
    media_ = Media::kChunks;
    return true;
  }
  if (media_ == Media::kNone) return false;
  absl::StatusOr<std::string> data = (**file_)->Read(offset_, kChunkBytes);
  if (!data.ok()) {
    End(ToWire(data.status()));
    return false;
  }
  if (data->empty()) {
    media_ = Media::kNone;
    return false;
  }
  offset_ += static_cast<int64_t>(data->size());
  v1::MediaChunk* const chunk = in_flight_.mutable_media_chunk();
  chunk->set_sequence(sequence_++);
  chunk->set_crc32(static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(data->data()), static_cast<uInt>(data->size()))));
  chunk->set_data(*std::move(data));
  return true;
}

bool JobStream::TakeNext() {
  in_flight_.Clear();
  std::optional<v1::GenerateVideoEvent> event = job_->EventFrom(next_event_);
  if (!event.has_value()) return false;
  if (event->has_finished() || event->has_partial()) {
    if (!file_.has_value()) OpenClip();
    if (media_ == Media::kHeader && !file_->ok()) {
      End(ToWire(file_->status()));
      return false;
    }
    if (TakeMedia()) return true;
    if (ended_) return false;
  }
  in_flight_ = *std::move(event);
  next_event_ = in_flight_.number() + 1;
  // A preview is shown once; what is repeated tells where the job stands.
  if (!in_flight_.has_preview()) last_event_ = in_flight_;
  return true;
}

void JobStream::Advance() {
  if (writing_ || ended_) return;
  if (broken_) {
    End(grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled"));
    return;
  }
  // Before looking for events: what a job that is over has to tell is all there.
  const bool over = job_->over();
  if (over && !file_.has_value()) OpenClip();
  if (TakeNext()) {
    Write();
  } else if (over) {
    End(job_->EndStatus());
  }
}

void JobStream::Write() {
  writing_ = true;
  last_sent_ = absl::Now();
  StartWrite(&in_flight_);
}

void JobStream::End(const grpc::Status& status) {
  if (ended_) return;
  ended_ = true;
  file_.reset();
  Finish(status);
}

void JobStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) broken_ = true;
  Advance();
}

void JobStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    if (job_ != nullptr) Advance();
  }
  Leave();
}

void JobStream::Leave() {
  std::function<void()> on_gone;
  {
    absl::MutexLock lock(&mutex_);
    on_gone = std::exchange(options_.on_gone, nullptr);
  }
  if (on_gone) on_gone();
}

void JobStream::OnDone() {
  Leave();
  std::shared_ptr<JobStream> keep_until_unlocked;
  absl::MutexLock lock(&mutex_);
  keep_until_unlocked = std::move(self_);
}

}  // namespace ltx::server
