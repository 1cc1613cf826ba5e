#include "server/generation_stream.h"

#include <zlib.h>

#include <string>
#include <utility>

#include "server/wire_status.h"

namespace ltx::server {
namespace {

/// Small against gRPC's default message limit of 4 MiB, large against its cost per message.
constexpr int64_t kChunkBytes = int64_t{256} * 1024;
/// Proxies commonly drop a connection after 60 s of silence.
constexpr absl::Duration kHeartbeatPeriod = absl::Seconds(10);

}  // namespace

std::shared_ptr<GenerationStream> GenerationStream::Create() {
  std::shared_ptr<GenerationStream> stream(new GenerationStream());
  absl::MutexLock lock(&stream->mutex_);
  stream->self_ = stream;
  return stream;
}

void GenerationStream::SetOnCancel(const std::function<void()>& on_cancel) {
  bool cancelled;
  {
    absl::MutexLock lock(&mutex_);
    on_cancel_ = on_cancel;
    cancelled = cancelled_;
  }
  if (cancelled) on_cancel();
}

void GenerationStream::Send(v1::GenerateVideoEvent event) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return;
  last_event_ = event;
  events_.push_back(std::move(event));
  Advance();
}

void GenerationStream::Complete(std::unique_ptr<MediaFile> media, v1::GenerationReport report) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return;
  ending_ = true;
  media_ = std::move(media);
  report_ = std::move(report);
  report_pending_ = true;
  if (media_ != nullptr) {
    v1::MediaHeader* header = events_.emplace_back().mutable_media_header();
    header->set_mime_type(media_->mime_type());
    header->set_total_bytes(media_->total_bytes());
    header->set_sha256(media_->sha256());
  }
  Advance();
}

void GenerationStream::Refuse(const absl::Status& status, absl::Duration retry_after) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return;
  ending_ = true;
  status_ = ToWire(status, retry_after);
  Advance();
}

void GenerationStream::Heartbeat(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (ending_ || writing_ || now - last_sent_ < kHeartbeatPeriod) return;
  if (last_event_.event_case() == v1::GenerateVideoEvent::EVENT_NOT_SET) return;
  events_.push_back(last_event_);
  Advance();
}

void GenerationStream::QueueMedia() {
  if (media_ != nullptr) {
    absl::StatusOr<std::string> data = media_->Read(kChunkBytes);
    if (!data.ok()) {
      status_ = ToWire(data.status());
      media_.reset();
      report_pending_ = false;
      return;
    }
    if (!data->empty()) {
      v1::MediaChunk* chunk = events_.emplace_back().mutable_media_chunk();
      chunk->set_sequence(next_sequence_++);
      chunk->set_crc32(static_cast<uint32_t>(
          crc32(0, reinterpret_cast<const Bytef*>(data->data()), static_cast<uInt>(data->size()))));
      chunk->set_data(*std::move(data));
      return;
    }
    media_.reset();
  }
  if (report_pending_) {
    report_pending_ = false;
    *events_.emplace_back().mutable_finished()->mutable_report() = std::move(report_);
  }
}

void GenerationStream::Advance() {
  if (writing_ || finished_) return;
  if (broken_) {
    // Nobody listens any more: what is queued is dropped, the job still decides when it ends.
    events_.clear();
    media_.reset();
    report_pending_ = false;
  }
  if (events_.empty() && ending_) QueueMedia();
  if (!events_.empty()) {
    in_flight_ = std::move(events_.front());
    events_.pop_front();
    writing_ = true;
    last_sent_ = absl::Now();
    StartWrite(&in_flight_);
    return;
  }
  if (ending_) {
    finished_ = true;
    Finish(status_);
  }
}

void GenerationStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) broken_ = true;
  Advance();
}

void GenerationStream::OnCancel() {
  std::function<void()> on_cancel;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    broken_ = true;
    on_cancel = on_cancel_;
  }
  if (on_cancel) on_cancel();
}

void GenerationStream::OnDone() {
  std::shared_ptr<GenerationStream> keep_until_unlocked;
  absl::MutexLock lock(&mutex_);
  on_cancel_ = nullptr;
  keep_until_unlocked = std::move(self_);
}

}  // namespace ltx::server
