#include "client/video_client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/error_details.h>
#include <zlib.h>

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/channel.h"
#include "engine/media/atomic_file.h"
#include "engine/media/sha256.h"
#include "engine/pipeline/recipe.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/status_macros.h"

namespace ltx::client {
namespace {

absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

struct Ending {
  absl::string_view mime_type, ending, what;
};
constexpr Ending kEndings[] = {{"video/mp4", ".mp4", "a clip of several frames"},
                               {"image/png", ".png", "one frame"},
                               {"audio/wav", ".wav", "sound alone"}};

/// A file's ending must not tell of something else than what is in it.
absl::Status CheckEnding(absl::string_view path, absl::string_view mime_type) {
  for (const Ending& wrong : kEndings) {
    if (wrong.mime_type == mime_type || !absl::EndsWithIgnoreCase(path, wrong.ending)) continue;
    for (const Ending& right : kEndings) {
      if (right.mime_type != mime_type) continue;
      return absl::InvalidArgumentError(absl::StrCat("output \"", path, "\": ", right.what,
                                                     " is written as ", right.ending, ", not as ",
                                                     wrong.ending));
    }
  }
  return absl::OkStatus();
}

/// What there is of a clip whose job was stopped, and where it goes.
constexpr char kPartialMimeType[] = "application/x-safetensors";
constexpr char kPartialEnding[] = ".partial.safetensors";

/// What a request ends in, as far as it says so itself.
std::optional<absl::string_view> ExpectedMimeType(const v1::GenerateVideoRequest& request) {
  const absl::StatusOr<pipeline::Recipe> recipe = pipeline::ParseRecipe(request.recipe());
  // Which recipe an unnamed one is, the server knows; none of the defaults is one of sound alone.
  if (recipe.ok() && !pipeline::TraitsOf(*recipe).video) return "audio/wav";
  if (!request.has_num_frames()) return std::nullopt;
  return request.num_frames() == 1 ? "image/png" : "video/mp4";
}

}  // namespace

/// Checks and writes the media of one stream.
class MediaReceiver {
 public:
  explicit MediaReceiver(media::AtomicFile file) : file_(std::move(file)) {}

  absl::Status Begin(const v1::MediaHeader& header) {
    header_ = header;
    if (header.mime_type() == kPartialMimeType) {
      LTX_ASSIGN_OR_RETURN(file_,
                           media::AtomicFile::Create(absl::StrCat(file_.path(), kPartialEnding)));
      return absl::OkStatus();
    }
    return CheckEnding(file_.path(), header.mime_type());
  }

  absl::Status Add(const v1::MediaChunk& chunk) {
    const uint32_t sum = static_cast<uint32_t>(
        crc32(0, AsBytes(chunk.data()).data(), static_cast<uInt>(chunk.data().size())));
    if (!header_.has_value() || chunk.sequence() != next_sequence_ || sum != chunk.crc32()) {
      return absl::DataLossError(
          absl::StrCat("media chunk ", chunk.sequence(), " arrived damaged or out of order"));
    }
    ++next_sequence_;
    bytes_ += static_cast<int64_t>(chunk.data().size());
    digest_.Add(chunk.data());
    return file_.Write(AsBytes(chunk.data()));
  }

  absl::Status Finish() {
    if (!header_.has_value()) return absl::DataLossError("the server sent no media");
    if (bytes_ != header_->total_bytes() || digest_.Finish() != header_->sha256()) {
      return absl::DataLossError(absl::StrCat("the media are not what the server announced: ",
                                              bytes_, " of ", header_->total_bytes(), " bytes"));
    }
    return file_.Commit();
  }

  /// Where the file is, or will be.
  const std::string& path() const { return file_.path(); }

 private:
  media::AtomicFile file_;
  media::Sha256 digest_;
  std::optional<v1::MediaHeader> header_;
  int next_sequence_ = 0;
  int64_t bytes_ = 0;
};

/// The call under way, if there is one.
struct VideoClient::Running {
  absl::Mutex mutex;
  grpc::ClientContext* context ABSL_GUARDED_BY(mutex) = nullptr;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
};

absl::Status FromWire(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string message = status.error_message();
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      google::rpc::ErrorInfo info;
      google::rpc::RetryInfo retry;
      if (any.UnpackTo(&info)) {
        absl::StrAppend(&message, " [", info.reason(), "]");
      } else if (any.UnpackTo(&retry)) {
        absl::StrAppend(&message, " (try again in ", retry.retry_delay().seconds(), " s)");
      }
    }
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), message);
}

namespace {

/// For calls that are answered from memory; far above what a busy server needs.
constexpr absl::Duration kAnswerLimit = absl::Seconds(30);

/// A call with one answer.
template <typename Start>
absl::Status Call(absl::Duration timeout, const Start& start) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  return FromWire(start(&context));
}

}  // namespace

VideoClient::VideoClient(const std::shared_ptr<grpc::Channel>& channel)
    : stub_(v1::VideoService::NewStub(channel)),
      jobs_(v1::JobService::NewStub(channel)),
      running_(std::make_shared<Running>()) {}

absl::StatusOr<std::unique_ptr<VideoClient>> VideoClient::Connect(const std::string& address,
                                                                  absl::Duration timeout) {
  ChannelOptions options;
  options.timeout = timeout;
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(address, options));
  return Over(channel);
}

std::unique_ptr<VideoClient> VideoClient::Over(const std::shared_ptr<grpc::Channel>& channel) {
  return std::unique_ptr<VideoClient>(new VideoClient(channel));
}

absl::StatusOr<v1::GenerationReport> VideoClient::Generate(const v1::GenerateVideoRequest& request,
                                                           const std::string& output_path,
                                                           const GenerateOptions& options) {
  std::optional<MediaReceiver> receiver;
  if (request.output_path().empty()) {
    if (const auto expected = ExpectedMimeType(request)) {
      LTX_RETURN_IF_ERROR(CheckEnding(output_path, *expected));
    }
    LTX_ASSIGN_OR_RETURN(media::AtomicFile file, media::AtomicFile::Create(output_path));
    receiver.emplace(std::move(file));
  }
  return ReadStream(
      [&](grpc::ClientContext* context) { return stub_->GenerateVideo(context, request); },
      receiver.has_value() ? &*receiver : nullptr, options);
}

absl::StatusOr<v1::GenerationReport> VideoClient::Watch(v1::WatchJobRequest request,
                                                        const std::string& output_path,
                                                        const GenerateOptions& options) {
  std::optional<MediaReceiver> receiver;
  if (output_path.empty()) {
    request.set_skip_media(true);
  } else {
    LTX_ASSIGN_OR_RETURN(media::AtomicFile file, media::AtomicFile::Create(output_path));
    receiver.emplace(std::move(file));
  }
  return ReadStream([&](grpc::ClientContext* context) { return jobs_->WatchJob(context, request); },
                    receiver.has_value() ? &*receiver : nullptr, options);
}

absl::StatusOr<std::string> VideoClient::Submit(v1::GenerateVideoRequest request,
                                                absl::Duration timeout) {
  request.set_detach(true);
  std::string job_id;
  GenerateOptions options;
  options.deadline = absl::Now() + timeout;
  options.on_event = [this, &job_id](const v1::GenerateVideoEvent& event) {
    if (!event.has_queued() || !job_id.empty()) return;
    job_id = event.queued().job_id();
    Cancel();
  };
  const absl::Status ended =
      ReadStream(
          [&](grpc::ClientContext* context) { return stub_->GenerateVideo(context, request); },
          /*receiver=*/nullptr, options)
          .status();
  if (!job_id.empty()) return job_id;
  if (!ended.ok()) return ended;
  return absl::DataLossError("the stream ended without a job");
}

absl::StatusOr<v1::GenerationReport> VideoClient::ReadStream(
    const std::function<std::unique_ptr<Reader>(grpc::ClientContext*)>& start,
    MediaReceiver* receiver, const GenerateOptions& options) {
  grpc::ClientContext context;
  if (options.deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(options.deadline));
  }
  if (!tenant_.empty()) context.AddMetadata("x-ltx-tenant", tenant_);
  {
    absl::MutexLock lock(&running_->mutex);
    if (std::exchange(running_->cancelled, false)) {
      return absl::CancelledError("cancelled before the start");
    }
    running_->context = &context;
  }
  const std::unique_ptr<Reader> reader = start(&context);
  absl::Status local;
  std::optional<v1::GenerationReport> report;
  std::string partial_path;
  v1::GenerateVideoEvent event;
  while (reader->Read(&event)) {
    if (!local.ok()) continue;  // Drains what was under way before the cancellation.
    if (event.has_media_header() && receiver != nullptr) {
      local = receiver->Begin(event.media_header());
    } else if (event.has_media_chunk() && receiver != nullptr) {
      local = receiver->Add(event.media_chunk());
    } else if (event.has_finished()) {
      report = event.finished().report();
    } else if (event.has_partial()) {
      partial_path = event.partial().path();
      if (partial_path.empty() && receiver != nullptr) {
        local = receiver->Finish();
        partial_path = receiver->path();
      }
    }
    if (!local.ok()) context.TryCancel();
    if (!event.has_media_chunk() && options.on_event) options.on_event(event);
  }
  const grpc::Status wire = reader->Finish();
  {
    absl::MutexLock lock(&running_->mutex);
    running_->context = nullptr;
    // A cancellation is of this call and no other.
    running_->cancelled = false;
  }
  LTX_RETURN_IF_ERROR(local);
  if (absl::Status ended = FromWire(wire); !ended.ok()) {
    if (partial_path.empty()) return ended;
    return absl::Status(ended.code(),
                        absl::StrCat(ended.message(), "; what there is: ", partial_path));
  }
  if (!report.has_value()) return absl::DataLossError("the stream ended without a report");
  if (receiver != nullptr) LTX_RETURN_IF_ERROR(receiver->Finish());
  return *std::move(report);
}

void VideoClient::Cancel() {
  absl::MutexLock lock(&running_->mutex);
  running_->cancelled = true;
  if (running_->context != nullptr) running_->context->TryCancel();
}

absl::StatusOr<v1::HealthResponse> VideoClient::Health(absl::Duration timeout) {
  v1::HealthResponse response;
  LTX_RETURN_IF_ERROR(Call(timeout, [&](grpc::ClientContext* context) {
    return stub_->Health(context, {}, &response);
  }));
  return response;
}

absl::StatusOr<v1::PlanResponse> VideoClient::Plan(const v1::GenerateVideoRequest& request,
                                                   absl::Time deadline) {
  grpc::ClientContext context;
  if (deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(deadline));
  v1::PlanResponse response;
  LTX_RETURN_IF_ERROR(FromWire(stub_->PlanVideo(&context, request, &response)));
  return response;
}

absl::StatusOr<v1::ListRungsResponse> VideoClient::Rungs(const v1::GenerateVideoRequest& request) {
  grpc::ClientContext context;
  v1::ListRungsRequest list;
  *list.mutable_request() = request;
  v1::ListRungsResponse response;
  LTX_RETURN_IF_ERROR(FromWire(stub_->ListRungs(&context, list, &response)));
  return response;
}

absl::StatusOr<v1::Job> VideoClient::GetJob(const std::string& job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  v1::Job job;
  LTX_RETURN_IF_ERROR(Call(kAnswerLimit, [&](grpc::ClientContext* context) {
    return jobs_->GetJob(context, request, &job);
  }));
  return job;
}

absl::StatusOr<v1::ListJobsResponse> VideoClient::ListJobs(const v1::ListJobsRequest& request) {
  v1::ListJobsResponse page;
  LTX_RETURN_IF_ERROR(Call(kAnswerLimit, [&](grpc::ClientContext* context) {
    return jobs_->ListJobs(context, request, &page);
  }));
  return page;
}

absl::StatusOr<v1::Job> VideoClient::CancelJob(const std::string& job_id) {
  v1::CancelJobRequest request;
  request.set_job_id(job_id);
  v1::Job job;
  LTX_RETURN_IF_ERROR(Call(kAnswerLimit, [&](grpc::ClientContext* context) {
    return jobs_->CancelJob(context, request, &job);
  }));
  return job;
}

absl::Status VideoClient::DeleteJob(const std::string& job_id) {
  v1::DeleteJobRequest request;
  request.set_job_id(job_id);
  v1::DeleteJobResponse response;
  return Call(kAnswerLimit, [&](grpc::ClientContext* context) {
    return jobs_->DeleteJob(context, request, &response);
  });
}

}  // namespace ltx::client
