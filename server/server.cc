#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/model.h"
#include "kernels/device_factory.h"
#include "kernels/status_macros.h"
#include "proto/ltx/version.h"
#include "server/auth/authenticator.h"
#include "server/auth/listen_credentials.h"
#include "server/calibration.h"
#include "server/condition/condition_service.h"
#include "server/condition/condition_store.h"
#include "server/governor/cost_file.h"
#include "server/governor/governor.h"
#include "server/governor/rung_ladder.h"
#include "server/job_service.h"
#include "server/jobs/heartbeat.h"
#include "server/jobs/job_manager.h"
#include "server/logging.h"
#include "server/metrics/metrics_endpoint.h"
#include "server/metrics/server_metrics.h"
#include "server/model_backend.h"
#include "server/scheduler/cancellation.h"
#include "server/video_service.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// Clients may ping this often without a call; gRPC's default of five minutes makes it hang up on
/// gateways that watch idle connections.
constexpr int kMinPingIntervalMs = 10000;
constexpr const char* kServiceNames[] = {"ltx.v1.VideoService", "ltx.v1.JobService"};
constexpr int64_t kMiB = int64_t{1} << 20;

/// SIGTERM and SIGINT, blocked in this thread and all that it starts, so that one place waits for
/// them. Give it life before any other thread.
class TerminationSignals {
 public:
  TerminationSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~TerminationSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  int Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

/// A folder of this process, gone with it.
class WorkDir {
 public:
  static absl::StatusOr<std::unique_ptr<WorkDir>> Create(const std::string& parent) {
    const char* temporary = std::getenv("TMPDIR");
    std::string pattern = absl::StrCat(!parent.empty()        ? parent
                                       : temporary != nullptr ? temporary
                                                              : "/tmp",
                                       "/ltx-server-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot create a folder below ", parent.empty() ? "/tmp" : parent));
    }
    return std::unique_ptr<WorkDir>(new WorkDir(pattern));
  }
  /// Files inside are removed by whoever made them.
  ~WorkDir() { rmdir(path_.c_str()); }
  WorkDir(const WorkDir&) = delete;
  WorkDir& operator=(const WorkDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit WorkDir(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

/// The reference's system prompts have 4 to 5 KB; the text model reads all of it for each prompt.
constexpr size_t kMaxSystemPromptBytes = 32 << 10;

/// What tells the text model how to rewrite prompts; empty if no file is configured.
absl::StatusOr<std::string> ReadSystemPrompt(const std::string& path) {
  if (path.empty()) return std::string();
  const auto bad = [&path](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_enhancement_system_prompt_file: \"", path, "\" ", what));
  };
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxSystemPromptBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.eof()) {
    return bad(file.is_open() ? absl::StrCat("cannot be read or has more than ",
                                             kMaxSystemPromptBytes, " bytes")
                              : "cannot be opened");
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) return bad("is empty");
  return text;
}

/// A mistyped root would otherwise show up as a refusal of every request.
absl::Status CheckOutputRoots(const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    struct stat info;
    if (stat(root.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return absl::NotFoundError(absl::StrCat("output_roots: \"", root, "\" is not a folder"));
  }
  return absl::OkStatus();
}

JobManagerOptions JobOptions(const ServerConfig& config, const std::string& scratch_dir,
                             ServerMetrics* metrics) {
  JobManagerOptions options;
  options.scheduler.capacity = config.queue_capacity;
  options.scheduler.tenant_weights = config.tenant_weights;
  options.scheduler.batch_ageing_seconds = config.batch_ageing_seconds;
  options.tenant_max_jobs = config.tenant_max_jobs;
  options.state_dir = config.state_dir;
  options.scratch_dir = scratch_dir;
  options.artifact_quota_bytes = config.artifact_quota_mib * kMiB;
  options.ttl = absl::Seconds(config.job_ttl_seconds);
  options.history = config.job_history;
  if (config.queue_timeout_seconds > 0) {
    options.queue_timeout = absl::Seconds(config.queue_timeout_seconds);
  }
  options.on_over = [metrics](const Job& job) {
    const v1::Job over = job.Describe(/*brief=*/false);
    metrics->CountRequest(over.parameters().recipe(), over.rung(),
                          static_cast<absl::StatusCode>(job.EndStatus().error_code()));
  };
  return options;
}

/// Share of the memory that is available at the start which the server takes for its own: the rest
/// is for what the ledger does not hold and for everybody else's growth.
constexpr double kMemoryShare = 0.9;

Governor::Options GovernorOptions(const ServerConfig& config, const pipeline::Model& model,
                                  int64_t baseline_available_bytes) {
  Governor::Options options;
  options.device_bytes = config.memory_budget_bytes;
  if (options.device_bytes == 0) {
    options.device_bytes =
        static_cast<int64_t>(kMemoryShare * static_cast<double>(baseline_available_bytes));
  }
  // Was checked with the configuration.
  if (!config.rungs.empty()) {
    options.ladder = RungLadder::Create(config.rungs).value();
    return options;
  }
  // Legal in recipes of two stages, hence in all.
  constexpr int64_t kSizeMultiple = 64;
  const pipeline::GenerationRequest defaults = model.DefaultRequest();
  const pipeline::RequestLimits& limits = model.limits();
  options.ladder =
      RungLadder::FromModel({defaults.width, defaults.height, defaults.num_frames},
                            {limits.min_size, limits.min_size, limits.min_frames},
                            {limits.max_size, limits.max_size, limits.max_frames}, kSizeMultiple);
  return options;
}

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

/// What the server runs on, and how much of it is left by others.
void LogDevice(const OpenedDevice& opened, int64_t available_bytes) {
  if (!opened.why_cpu.empty()) spdlog::info("device auto is the CPU: {}", opened.why_cpu);
  const Device& device = *opened.device;
  spdlog::info("device {}: {}; {:.1f} GB free", device.name(), device.description(),
               Gigabytes(available_bytes));
  const int64_t total = device.properties().memory_bytes;
  if (total > 0) {
    spdlog::info("{:.1f} of {:.1f} GB are taken, by others and by the driver's own context",
                 Gigabytes(total - available_bytes), Gigabytes(total));
  }
}

/// What stays on the device for good, by owner.
void LogWeights(Device* device, absl::Duration took) {
  const MemoryLedger::Snapshot memory = device->ledger().Read();
  std::vector<std::string> parts;
  for (int i = 0; i < kMemoryOwnerCount; ++i) {
    const int64_t bytes = memory.by_owner[i].live_bytes;
    if (bytes == 0) continue;
    parts.push_back(
        absl::StrFormat("%s %.2f", MemoryOwnerName(static_cast<MemoryOwner>(i)), Gigabytes(bytes)));
  }
  spdlog::info("loaded in {:.2f} s; GB on the device: {}; {:.2f} in all, at most {:.2f} on the way",
               absl::ToDoubleSeconds(took), absl::StrJoin(parts, ", "),
               Gigabytes(memory.total.live_bytes), Gigabytes(memory.total.peak_bytes));
}

void KeepCosts(const std::optional<CostFile>& file, const Governor& governor) {
  if (!file.has_value()) return;
  const absl::Status saved = file->Save(governor.CostsToJson());
  if (!saved.ok()) spdlog::warn("measured costs are lost: {}", saved.ToString());
}

/// What the configuration says, or what is enough for a clip of each size of a calibration: with
/// ltx-tiny on a CPU, with the published sizes on a GPU.
absl::Duration CalibrationBudget(const ServerConfig& config, const Device& device) {
  if (config.calibration_seconds >= 0) return absl::Seconds(config.calibration_seconds);
  return absl::Seconds(device.properties().is_gpu ? 40 : 2);
}

/// What a former process has measured, or what a short calibration finds out.
void LearnCosts(const ServerConfig& config, const pipeline::Model& model,
                const std::optional<CostFile>& file, const std::string& scratch_dir,
                Governor* governor) {
  if (file.has_value()) {
    const absl::StatusOr<std::string> kept = file->Load();
    const absl::Status read = kept.ok() ? governor->CostsFromJson(*kept) : kept.status();
    if (read.ok()) {
      spdlog::info("measured costs from {}", file->path());
      // A process that ended early may not have met every kind of work.
      const absl::StatusOr<GovernorPlan> usual = governor->Weigh(model.DefaultRequest(), {}, {});
      if (usual.ok() && usual->demand.seconds_known) return;
    } else if (!absl::IsNotFound(read)) {
      spdlog::warn("measured costs are of no use: {}", read.ToString());
    }
  }
  const absl::Duration budget = CalibrationBudget(config, model.device());
  if (budget == absl::ZeroDuration()) return;
  spdlog::info(
      "calibration: for at most {:.0f} s, before the first request (calibration_seconds; a "
      "state_dir keeps what it finds for the next start)",
      absl::ToDoubleSeconds(budget));
  const absl::Status measured = Calibrate(model, governor, scratch_dir, budget);
  if (!measured.ok()) spdlog::warn("calibration ended: {}", measured.ToString());
  KeepCosts(file, *governor);
}

/// OK while new jobs are accepted.
absl::Status Ready(const JobManager& jobs) {
  return jobs.ReadScheduler().draining ? ShuttingDown() : absl::OkStatus();
}

/// "auto" is what the device is fast in: bf16 on a GPU, f32 on a CPU.
DType ComputeDType(const ServerConfig& config, const Device& device) {
  if (config.compute_dtype == "auto") {
    return device.properties().is_gpu ? DType::kBF16 : DType::kF32;
  }
  return config.compute_dtype == "bf16" ? DType::kBF16 : DType::kF32;
}

ConditionStore::Options StoreOptions(const ConditionConfig& config) {
  ConditionStore::Options options;
  options.budget_bytes = config.store_bytes;
  options.tenant_budget_bytes = config.tenant_bytes;
  options.max_upload_bytes = config.max_bytes;
  options.max_uploads = config.max_uploads;
  options.ttl = absl::Seconds(config.ttl_seconds);
  return options;
}

ConditionService::Options UploadOptions(const ConditionConfig& config,
                                        const pipeline::Model* model) {
  ConditionService::Options options;
  options.upload_limit = absl::Seconds(config.upload_seconds);
  media::MediaLimits& limits = options.inspect.limits;
  limits.max_pixels = config.max_pixels;
  limits.max_frames = config.max_frames;
  limits.max_seconds = config.max_seconds;
  limits.max_decoded_bytes = config.max_decoded_bytes;
  options.inspect.check_prompt = [model](absl::string_view text) {
    pipeline::GenerationRequest request = model->DefaultRequest();
    request.prompt = std::string(text);
    return model->Validate(request);
  };
  return options;
}

absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(const ServerConfig& config,
                                                     const std::vector<grpc::Service*>& services,
                                                     int* port) {
  grpc::EnableDefaultHealthCheckService(true);
  if (config.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                       ListenCredentials({config.tls_cert, config.tls_key, config.tls_client_ca}));
  builder.AddListeningPort(config.listen, credentials, port);
  builder.SetMaxReceiveMessageSize(config.max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, config.max_concurrent_streams);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // A second server on the same port would take half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || *port == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", config.listen, ": is it taken, or not an address here?"));
  }
  return server;
}

}  // namespace

absl::Status RunServer(const ServerConfig& config) {
  const TerminationSignals signals;
  ConfigureLogging(config.log_level, config.log_format);
  const absl::Time start = absl::Now();
  spdlog::info("ltx_server {} starts, model {}", kVersion, config.model);

  LTX_RETURN_IF_ERROR(CheckOutputRoots(config.output_roots));
  LTX_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(config.device, config.threads));
  Device* const device = opened.device.get();
  // Before anything is loaded: what is not free now is not this server's.
  const int64_t baseline = device->SystemAvailableBytes();
  LogDevice(opened, baseline);
  const absl::Time loading = absl::Now();
  LTX_ASSIGN_OR_RETURN(const checkpoint::ModelSet files, checkpoint::ModelSet::Open(config.model));
  for (const std::string& warning : files.warnings) spdlog::warn("{}", warning);
  pipeline::ModelOptions model_options;
  model_options.compute_dtype = ComputeDType(config, *device);
  model_options.record_forwards = config.cuda_graphs;
  model_options.prompt_cache_bytes = config.prompt_cache_bytes;
  LTX_ASSIGN_OR_RETURN(model_options.enhancement_system_prompt,
                       ReadSystemPrompt(config.prompt_enhancement_system_prompt_file));
  model_options.fused_cache_bytes =
      config.fused_cache_bytes < 0 ? std::numeric_limits<int64_t>::max() : config.fused_cache_bytes;
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<pipeline::Model> model,
                       pipeline::Model::Load(device, files, model_options));
  if (!model_options.enhancement_system_prompt.empty() && !model->CheckEnhancement().ok()) {
    spdlog::warn("prompt_enhancement_system_prompt_file is of no use: {}",
                 std::string(model->CheckEnhancement().message()));
  }
  LogWeights(device, absl::Now() - loading);
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<WorkDir> work_dir, WorkDir::Create(config.work_dir));

  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<Governor> governor,
      Governor::Create(model.get(), files, GovernorOptions(config, *model, baseline)));
  ServerMetrics metrics;
  std::optional<CostFile> costs;
  if (!config.state_dir.empty()) costs.emplace(config.state_dir, CostIdentity(*model, files));
  // The device's thread begins with the calibration: memory that was touched there is there for
  // requests.
  absl::Notification learned;
  SchedulerHooks hooks = ModelHooks(model.get(), governor.get());
  hooks.idle = [&, improve = std::move(hooks.idle)] {
    if (learned.HasBeenNotified()) return improve();
    LearnCosts(config, *model, costs, work_dir->path(), governor.get());
    learned.Notify();
    return true;
  };
  // Makes the state folder if it is not there yet.
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<JobManager> jobs,
      JobManager::Create(JobOptions(config, work_dir->path(), &metrics), std::move(hooks)));
  learned.WaitForNotification();
  Heartbeat heartbeat([&jobs](absl::Time now) { jobs->Sweep(now); });
  ModelBackend backend(model.get(), governor.get(), {config.output_roots, config.model, baseline},
                       &metrics);
  metrics.SetSource([&] {
    ServerMetrics::Reading reading = backend.ReadMetrics();
    reading.queue_depth = jobs->ReadScheduler().total_waiting();
    return reading;
  });
  // Uploads lie in the host's memory, which is the device's own only on a CPU.
  MemoryLedger host_ledger;
  ConditionStore condition_store(StoreOptions(config.condition),
                                 device->name() == "cpu" ? &device->ledger() : &host_ledger,
                                 &metrics);
  ConditionService conditions(UploadOptions(config.condition, model.get()), &condition_store);
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<Authenticator> authenticator,
      Authenticator::Create({config.token_file, /*by_certificate=*/!config.tls_client_ca.empty()}));
  VideoService video_service(&backend, jobs.get(), &heartbeat, &metrics, &conditions,
                             authenticator.get());
  JobService job_service(jobs.get(), &heartbeat, authenticator.get());
  int port = 0;
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<grpc::Server> server,
                       Listen(config, {&video_service, &job_service}, &port));
  grpc::HealthCheckServiceInterface* health = server->GetHealthCheckService();
  health->SetServingStatus(true);
  for (const char* name : kServiceNames) health->SetServingStatus(name, true);

  std::unique_ptr<MetricsEndpoint> metrics_endpoint;
  if (!config.metrics_listen.empty()) {
    LTX_ASSIGN_OR_RETURN(
        metrics_endpoint,
        MetricsEndpoint::Start(config.metrics_listen, {[&metrics] { return metrics.Text(); },
                                                       [&jobs] { return Ready(*jobs); }}));
    spdlog::info("metrics and probes on port {}", metrics_endpoint->port());
  }

  const std::string host = config.listen.substr(0, config.listen.rfind(':'));
  spdlog::info("{} {} ({}) ready on {} after {:.2f} s", model->name(), model->version(),
               std::string(checkpoint::ModelKindName(model->kind())), absl::StrCat(host, ":", port),
               absl::ToDoubleSeconds(absl::Now() - start));
  std::printf("listening on %s:%d\n", host.c_str(), port);
  std::fflush(stdout);

  const int signal = signals.Wait();
  spdlog::info("signal {}: no new jobs; the running one has {:.0f} s", signal,
               config.drain_seconds);
  health->SetServingStatus(false);
  jobs->Drain(absl::Seconds(config.drain_seconds));
  // Streams that are still sending media get as long again.
  server->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(config.drain_seconds)));
  server->Wait();
  KeepCosts(costs, *governor);
  spdlog::info("bye");
  return absl::OkStatus();
}

}  // namespace ltx::server
