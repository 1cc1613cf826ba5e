#include "bench/service_load.h"

#include <grpcpp/grpcpp.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"
#include "server/generation_backend.h"
#include "server/job_service.h"
#include "server/jobs/fake_generation.h"
#include "server/jobs/heartbeat.h"
#include "server/jobs/job_manager.h"
#include "server/metrics/server_metrics.h"
#include "server/scheduler/scheduler.h"
#include "server/tenant.h"
#include "server/video_service.h"

namespace ltx::bench {
namespace {

constexpr char kHolder[] = "holder";

int64_t ResidentBytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  int64_t virtual_pages = 0;
  int64_t resident_pages = 0;
  file >> virtual_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

/// What the fake engine saw.
struct Executed {
  absl::Mutex mutex;
  std::vector<std::string> tenants ABSL_GUARDED_BY(mutex);
};

/// Work of some units that take no time; the prompt names the tenant. A job of kHolder occupies the
/// device until `release`.
class FakeBackend final : public server::GenerationBackend {
 public:
  FakeBackend(int units, Executed* executed, absl::Notification* release)
      : units_(units), executed_(executed), release_(release) {}

  absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) override {
    server::FakeGeneration::Options work;
    work.units = units_;
    work.unit_seconds = 1e-3;
    work.clip_bytes = 0;
    if (request.prompt() == kHolder) {
      work.run = [release = release_](int) {
        release->WaitForNotification();
        return absl::OkStatus();
      };
    } else {
      work.run = [this, tenant = request.prompt()](int unit) {
        if (unit != units_) return absl::OkStatus();
        absl::MutexLock lock(&executed_->mutex);
        executed_->tenants.push_back(tenant);
        return absl::OkStatus();
      };
    }
    Prepared prepared;
    prepared.make_task = [work](const std::string& id,
                                std::shared_ptr<server::GenerationSink> sink) {
      return std::make_unique<server::FakeGeneration>(id, work, std::move(sink));
    };
    return prepared;
  }
  void Describe(v1::HealthResponse* response) const override {
    response->mutable_model()->set_name("fake");
  }

 private:
  const int units_;
  Executed* const executed_;
  absl::Notification* const release_;
};

/// What the clients saw.
struct Seen {
  explicit Seen(int jobs) : queued(jobs), ended(jobs) {}
  absl::BlockingCounter queued;
  absl::BlockingCounter ended;
  absl::Mutex mutex;
  std::set<std::string> ids ABSL_GUARDED_BY(mutex);
  int finished ABSL_GUARDED_BY(mutex) = 0;
  int failed ABSL_GUARDED_BY(mutex) = 0;
  int wrong_progress ABSL_GUARDED_BY(mutex) = 0;
  int duplicated ABSL_GUARDED_BY(mutex) = 0;
};

/// One job at its client; deletes itself.
class Call final : public grpc::ClientReadReactor<v1::GenerateVideoEvent> {
 public:
  Call(v1::VideoService::Stub* stub, const std::string& tenant, int units, Seen* seen)
      : units_(units), seen_(seen) {
    request_.set_prompt(tenant);
    context_.AddMetadata(server::kTenantKey, tenant);
    stub->async()->GenerateVideo(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (event_.has_queued()) {
      if (id_.empty()) seen_->queued.DecrementCount();
      id_ = event_.queued().job_id();
    }
    if (event_.has_progress() && event_.progress().units_done() != ++progress_) wrong_ = true;
    if (event_.has_finished()) finished_ = true;
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    {
      absl::MutexLock lock(&seen_->mutex);
      ++(status.ok() && finished_ ? seen_->finished : seen_->failed);
      if (wrong_ || progress_ != units_) ++seen_->wrong_progress;
      if (!id_.empty() && !seen_->ids.insert(id_).second) ++seen_->duplicated;
    }
    if (id_.empty()) seen_->queued.DecrementCount();
    seen_->ended.DecrementCount();
    delete this;
  }

 private:
  const int units_;
  Seen* const seen_;
  grpc::ClientContext context_;
  v1::GenerateVideoRequest request_;
  v1::GenerateVideoEvent event_;
  std::string id_;
  int progress_ = 0;
  bool wrong_ = false;
  bool finished_ = false;
};

/// A connection of its own.
std::shared_ptr<grpc::Channel> Connect(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials(), arguments);
}

double Percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(part * values.size()))];
}

/// Of the jobs that were done while nobody had run out of them.
double Unfairness(const std::vector<std::string>& tenants, const LoadOptions& options) {
  double weights = 0;
  double heaviest = 0;
  for (const auto& [tenant, weight] : options.weights) {
    weights += weight;
    heaviest = std::max(heaviest, weight);
  }
  // The heaviest tenant's jobs are through first; stop a little before.
  const double each = static_cast<double>(options.jobs) / options.weights.size();
  const auto looked_at =
      std::min(tenants.size(), static_cast<size_t>(0.95 * each * weights / heaviest));
  double worst = 0;
  for (const auto& [tenant, weight] : options.weights) {
    const auto count = std::count(tenants.begin(), tenants.begin() + looked_at, tenant);
    worst = std::max(worst, std::abs(count / (looked_at * weight / weights) - 1));
  }
  return worst;
}

std::string TenantOf(int job, const LoadOptions& options) {
  return std::next(options.weights.begin(), job % options.weights.size())->first;
}

server::SchedulerOptions SchedulerSettings(const LoadOptions& options) {
  server::SchedulerOptions settings;
  settings.capacity = options.jobs + 1;
  settings.tenant_weights = options.weights;
  return settings;
}

class SilentListener final : public server::JobListener {
 public:
  explicit SilentListener(absl::BlockingCounter* ended) : ended_(ended) {}
  void OnQueued(int) override {}
  void OnStarted() override {}
  void OnSuspended() override {}
  void OnResumed() override {}
  void OnEnd(const absl::Status&) override { ended_->DecrementCount(); }

 private:
  absl::BlockingCounter* const ended_;
};

class CountedTask final : public server::Task {
 public:
  explicit CountedTask(int units) : left_(units) {}
  absl::Status Start(int) override { return absl::OkStatus(); }
  absl::StatusOr<server::UnitOutcome> AdvanceUnit() override {
    return server::UnitOutcome{--left_ == 0, 1e-3};
  }

 private:
  int left_;
};

/// Asks Health without a pause from its making to Stop().
class HealthWatch {
 public:
  explicit HealthWatch(int port)
      : stub_(v1::VideoService::NewStub(Connect(port))), thread_([this] { Loop(); }) {}
  std::vector<double> Stop() {
    stop_ = true;
    thread_.join();
    return std::move(milliseconds_);
  }

 private:
  void Loop() {
    while (!stop_) {
      grpc::ClientContext context;
      v1::HealthResponse response;
      const absl::Time start = absl::Now();
      if (!stub_->Health(&context, {}, &response).ok()) continue;
      milliseconds_.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
    }
  }

  const std::unique_ptr<v1::VideoService::Stub> stub_;
  std::atomic<bool> stop_{false};
  std::vector<double> milliseconds_;
  std::thread thread_;
};

/// The part of the load that comes from clients; fills in what they and the engine saw.
void RunClients(const LoadOptions& options, int port, absl::Notification* release,
                Executed* executed, LoadReport* report) {
  std::vector<std::unique_ptr<v1::VideoService::Stub>> stubs;
  for (int i = 0; i < options.clients; ++i) {
    stubs.push_back(v1::VideoService::NewStub(Connect(port)));
  }
  Seen held(1);
  new Call(stubs[0].get(), kHolder, options.units, &held);
  held.queued.Wait();

  HealthWatch health(port);
  Seen seen(options.jobs);
  const absl::Time start = absl::Now();
  std::vector<std::thread> clients;
  for (int client = 0; client < options.clients; ++client) {
    clients.emplace_back([&, client] {
      for (int job = client; job < options.jobs; job += options.clients) {
        // A tenant has many clients, and a client jobs of many tenants.
        new Call(stubs[client].get(), TenantOf(job / options.clients + client, options),
                 options.units, &seen);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  seen.queued.Wait();
  const absl::Time all_queued = absl::Now();
  release->Notify();
  seen.ended.Wait();
  held.ended.Wait();
  report->run_seconds = absl::ToDoubleSeconds(absl::Now() - all_queued);
  report->submit_seconds = absl::ToDoubleSeconds(all_queued - start);
  report->microseconds_per_unit = 1e6 * report->run_seconds / options.jobs / options.units;
  const std::vector<double> latencies = health.Stop();
  report->health_calls = static_cast<int>(latencies.size());
  report->health_p50_ms = Percentile(latencies, 0.5);
  report->health_p99_ms = Percentile(latencies, 0.99);
  {
    absl::MutexLock lock(&seen.mutex);
    report->finished = seen.finished;
    report->failed = seen.failed;
    report->wrong_progress = seen.wrong_progress;
    report->duplicated = seen.duplicated;
  }
  absl::MutexLock lock(&executed->mutex);
  report->executed = static_cast<int>(executed->tenants.size());
  report->unfairness = Unfairness(executed->tenants, options);
}

}  // namespace

absl::StatusOr<LoadReport> RunServiceLoad(const LoadOptions& options) {
  Executed executed;
  absl::Notification release;
  server::JobManagerOptions settings;
  settings.scheduler = SchedulerSettings(options);
  settings.scratch_dir = "/nonexistent";  // No job makes a clip.
  settings.history = 100;
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<server::JobManager> jobs,
                       server::JobManager::Create(std::move(settings), {}));
  server::Heartbeat heartbeat(nullptr);
  server::ServerMetrics metrics;
  FakeBackend backend(options.units, &executed, &release);
  server::VideoService video_service(&backend, jobs.get(), &heartbeat, &metrics);
  server::JobService job_service(jobs.get(), &heartbeat);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&video_service);
  builder.RegisterService(&job_service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("the server does not start");

  LoadReport report;
  report.resident_bytes_before = ResidentBytes();
  RunClients(options, port, &release, &executed, &report);
  report.resident_bytes_after = ResidentBytes();
  server->Shutdown();
  server->Wait();
  return report;
}

double SchedulerMicrosecondsPerUnit(const LoadOptions& options) {
  server::Scheduler scheduler(SchedulerSettings(options), {});
  absl::BlockingCounter ended(options.jobs);
  const auto listener = std::make_shared<SilentListener>(&ended);
  const absl::Time start = absl::Now();
  std::vector<std::thread> clients;
  for (int client = 0; client < options.clients; ++client) {
    clients.emplace_back([&, client] {
      for (int job = client; job < options.jobs; job += options.clients) {
        server::JobSpec spec;
        spec.id = absl::StrCat(job);
        spec.tenant = TenantOf(job, options);
        (void)scheduler.Submit(std::move(spec), std::make_unique<CountedTask>(options.units),
                               listener);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  ended.Wait();
  return absl::ToDoubleMicroseconds(absl::Now() - start) / options.jobs / options.units;
}

}  // namespace ltx::bench
