#include "server/clip_encoder.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::server {

absl::StatusOr<std::unique_ptr<ClipEncoder>> ClipEncoder::Start(const std::string& path,
                                                                const media::Mp4Options& options) {
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<media::Mp4Writer> writer,
                       media::Mp4Writer::Create(path, options));
  auto encoder = absl::WrapUnique(
      new ClipEncoder(std::move(writer), int64_t{options.width} * options.height * 3 / 2));
  encoder->thread_ = std::thread([raw = encoder.get()] { raw->Run(); });
  return encoder;
}

ClipEncoder::ClipEncoder(std::unique_ptr<media::Mp4Writer> writer, int64_t frame_bytes)
    : writer_(std::move(writer)), frame_bytes_(frame_bytes) {}

ClipEncoder::~ClipEncoder() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void ClipEncoder::Add(HostBytes i420) {
  added_ += static_cast<int64_t>(i420.bytes().size()) / frame_bytes_;
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(i420));
}

void ClipEncoder::Run() {
  while (true) {
    absl::Span<const uint8_t> part;
    {
      absl::MutexLock lock(&mutex_);
      const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&awake));
      if (stop_) return;
      part = waiting_.front().bytes();
    }
    const absl::Status encoded = EncodePart(part);
    absl::MutexLock lock(&mutex_);
    spent_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    status_.Update(encoded);
    if (!status_.ok()) return;
  }
}

absl::Status ClipEncoder::EncodePart(absl::Span<const uint8_t> i420) {
  for (size_t at = 0; at < i420.size(); at += frame_bytes_) {
    {
      absl::MutexLock lock(&mutex_);
      if (stop_) return absl::CancelledError("the clip is abandoned");
    }
    LTX_RETURN_IF_ERROR(writer_->AddFrames(i420.subspan(at, frame_bytes_)));
    absl::MutexLock lock(&mutex_);
    ++encoded_;
  }
  return absl::OkStatus();
}

absl::Status ClipEncoder::WaitFor(int64_t frames) {
  if (frames > added_) {
    return absl::InternalError(
        absl::StrCat("waiting for ", frames, " frames where ", added_, " were added"));
  }
  std::vector<HostBytes> spent;
  absl::MutexLock lock(&mutex_);
  const auto reached = [this, frames]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return encoded_ >= frames || !status_.ok();
  };
  mutex_.Await(absl::Condition(&reached));
  spent.swap(spent_);
  return status_;
}

absl::StatusOr<int64_t> ClipEncoder::Finish(absl::Span<const float> waveform) {
  LTX_RETURN_IF_ERROR(WaitFor(added_));
  return writer_->Finish(waveform);
}

}  // namespace ltx::server
