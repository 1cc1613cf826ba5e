#include "server/video_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/pipeline/error_details.h"
#include "kernels/status_macros.h"
#include "proto/ltx/version.h"
#include "server/generation_task.h"
#include "server/output_path.h"
#include "server/request_mapping.h"
#include "server/wire_status.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// How often streams are looked at; ten times as often as they may be silent.
constexpr absl::Duration kHeartbeatTick = absl::Seconds(1);

void CountRefused(const absl::Status& status, ServerMetrics* metrics) {
  metrics->CountRequest("", "", status.code());
  const std::optional<pipeline::ErrorDetail> detail = pipeline::GetErrorDetail(status);
  metrics->CountRefusal(detail.has_value() ? detail->reason
                                           : absl::StatusCodeToString(status.code()));
}

/// Ends a client stream with a status as soon as it is there.
class RefusingReadReactor final : public grpc::ServerReadReactor<v1::ConditionRequest> {
 public:
  explicit RefusingReadReactor(const absl::Status& status) { Finish(ToWire(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

VideoService::VideoService(const pipeline::Model* model, VideoServiceOptions options,
                           ServerMetrics* metrics)
    : model_(model),
      options_(std::move(options)),
      metrics_(metrics),
      started_(absl::Now()),
      id_prefix_(absl::StrFormat("%08x", static_cast<uint32_t>(absl::ToUnixSeconds(started_)))),
      executor_(options_.queue_capacity),
      heartbeat_([this] { HeartbeatLoop(); }) {
  metrics_->SetSource([this] {
    const text::PromptCache::Stats prompts = model_->prompt_cache_stats();
    return ServerMetrics::Reading{model_->device().ledger().Read(),
                                  model_->device().SystemAvailableBytes(), executor_.Read().waiting,
                                  prompts.hits, prompts.misses};
  });
}

VideoService::~VideoService() {
  metrics_->SetSource(nullptr);
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  heartbeat_.join();
}

absl::Status VideoService::Start(const v1::GenerateVideoRequest& request, absl::Time deadline,
                                 const std::shared_ptr<GenerationStream>& stream) {
  LTX_ASSIGN_OR_RETURN(pipeline::GenerationRequest mapped,
                       FromWire(request, model_->DefaultRequest()));
  LTX_RETURN_IF_ERROR(model_->Validate(mapped));
  OutputTarget target;
  target.work_dir = options_.work_dir;
  if (!request.output_path().empty()) {
    LTX_ASSIGN_OR_RETURN(
        target.path,
        ResolveOutputPath(request.output_path(), mapped.num_frames == 1, options_.output_roots));
  }
  const std::string id = absl::StrCat(id_prefix_, "-", next_job_.fetch_add(1));
  auto task =
      std::make_shared<GenerationTask>(id, deadline, model_, std::move(mapped), std::move(target),
                                       stream, &running_phase_, metrics_);
  {
    absl::MutexLock lock(&mutex_);
    streams_.push_back(stream);
  }
  LTX_RETURN_IF_ERROR(executor_.Submit(task));
  // After the submission: a client that is gone already cancels right here. A weak pointer, since
  // the task holds the stream.
  stream->SetOnCancel([this, weak = std::weak_ptr<GenerationTask>(task)] {
    if (const std::shared_ptr<GenerationTask> alive = weak.lock()) executor_.Cancel(alive.get());
  });
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::GenerateVideoEvent>* VideoService::GenerateVideo(
    grpc::CallbackServerContext* context, const v1::GenerateVideoRequest* request) {
  const std::shared_ptr<GenerationStream> stream = GenerationStream::Create();
  const absl::Time deadline = absl::FromChrono(context->deadline());
  const absl::Status status = Start(*request, deadline, stream);
  if (!status.ok()) {
    spdlog::info("refused: {}", status.ToString());
    CountRefused(status, metrics_);
    // A full queue empties at the pace of the jobs so far.
    const Executor::Snapshot queue = executor_.Read();
    const double wait = absl::IsResourceExhausted(status) ? queue.mean_job_seconds : 0.0;
    stream->Refuse(status, absl::Seconds(wait));
  }
  return stream.get();
}

grpc::ServerReadReactor<v1::ConditionRequest>* VideoService::Condition(grpc::CallbackServerContext*,
                                                                       v1::ConditionResponse*) {
  return std::make_unique<RefusingReadReactor>(
             absl::UnimplementedError("Condition is not implemented yet: conditioning on images, "
                                      "clips or sounds needs encoders that this build lacks"))
      .release();
}

grpc::ServerUnaryReactor* VideoService::Health(grpc::CallbackServerContext* context,
                                               const v1::HealthRequest*,
                                               v1::HealthResponse* response) {
  FillHealth(response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

absl::Status VideoService::Ready() const {
  return executor_.Read().draining ? ShuttingDown() : absl::OkStatus();
}

void VideoService::FillHealth(v1::HealthResponse* response) const {
  const Executor::Snapshot queue = executor_.Read();
  response->set_state(queue.draining ? v1::HealthResponse::STATE_DRAINING
                                     : v1::HealthResponse::STATE_READY);
  response->set_server_version(kVersion);
  response->set_uptime_seconds(absl::ToDoubleSeconds(absl::Now() - started_));

  v1::ModelInfo* model = response->mutable_model();
  model->set_name(model_->name());
  model->set_kind(model_->kind());
  model->set_version(model_->version());
  model->set_path(options_.model_path);
  for (const pipeline::Recipe recipe : model_->recipes()) {
    model->add_recipes(std::string(pipeline::RecipeName(recipe)));
  }
  const pipeline::RequestDefaults& defaults = model_->defaults();
  model->set_default_width(static_cast<int32_t>(defaults.width));
  model->set_default_height(static_cast<int32_t>(defaults.height));
  model->set_default_num_frames(static_cast<int32_t>(defaults.num_frames));
  model->set_default_frame_rate(defaults.frame_rate.value());

  v1::DeviceInfo* device = response->mutable_device();
  device->set_name(model_->device().name());
  device->set_description(model_->device().description());
  device->set_compute_dtype(model_->compute_dtype() == DType::kBF16 ? "bf16" : "f32");
  device->set_threads(model_->device().properties().threads);
  device->set_system_available_bytes(model_->device().SystemAvailableBytes());
  AddMemory(model_->device().ledger().Read(), response->mutable_memory());

  v1::QueueInfo* info = response->mutable_queue();
  info->set_waiting(queue.waiting);
  info->set_capacity(queue.capacity);
  info->set_running_job_id(queue.running_id);
  info->set_running_phase(static_cast<v1::Phase>(running_phase_.load()));
  info->set_finished_jobs(queue.succeeded);
  info->set_failed_jobs(queue.failed);
  info->set_cancelled_jobs(queue.cancelled);
}

void VideoService::HeartbeatLoop() {
  while (true) {
    std::vector<std::shared_ptr<GenerationStream>> alive;
    {
      absl::MutexLock lock(&mutex_);
      const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stop_; };
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped), kHeartbeatTick)) return;
      std::vector<std::weak_ptr<GenerationStream>> kept;
      for (const std::weak_ptr<GenerationStream>& weak : streams_) {
        if (std::shared_ptr<GenerationStream> stream = weak.lock()) {
          alive.push_back(std::move(stream));
          kept.push_back(weak);
        }
      }
      streams_ = std::move(kept);
    }
    for (const std::shared_ptr<GenerationStream>& stream : alive) stream->Heartbeat(absl::Now());
  }
}

}  // namespace ltx::server
