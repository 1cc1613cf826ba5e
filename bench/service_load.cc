#include "bench/service_load.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
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
#include "absl/time/clock.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"
#include "server/generation_backend.h"
#include "server/jobs/fake_generation.h"
#include "server/loopback_services.h"
#include "server/scheduler/scheduler.h"
#include "server/tenant.h"
#include "spdlog/spdlog.h"

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

/// Work of some units that do nothing but take time; the prompt names the tenant. A job of kHolder
/// occupies the device until Release().
class FakeBackend final : public server::GenerationBackend {
 public:
  explicit FakeBackend(const LoadOptions& options)
      : units_(options.units), unit_time_(options.unit_time) {}

  void Hold() {
    absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    held_ = false;
  }
  /// Tenants of the jobs done since the last call, in order.
  std::vector<std::string> TakeExecuted() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(executed_, {});
  }

  absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) override {
    server::FakeGeneration::Options work;
    work.units = units_;
    work.unit_seconds = 1e-3;
    work.clip_bytes = 0;
    work.run = [this, tenant = request.prompt()](int unit) {
      absl::SleepFor(unit_time_);
      absl::MutexLock lock(&mutex_);
      const auto free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !held_; };
      if (tenant == kHolder) {
        mutex_.Await(absl::Condition(&free));
      } else if (unit == units_) {
        executed_.push_back(tenant);
      }
      return absl::OkStatus();
    };
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
  const absl::Duration unit_time_;
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> executed_ ABSL_GUARDED_BY(mutex_);
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
    // First the context, which holds the channel: the last one to let go of it must not be gRPC's
    // own thread.
    Seen* const seen = seen_;
    delete this;
    seen->ended.DecrementCount();
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

/// The server's process: serves, and obeys lines from `in`: "hold", "release", and "tell", which it
/// answers with its resident bytes and the tenants of what was done. Ends with `in`.
void Serve(const LoadOptions& options, std::FILE* in, std::FILE* out) {
  spdlog::set_level(spdlog::level::warn);
  server::LoopbackServices::Options settings;
  settings.jobs.scheduler = SchedulerSettings(options);
  settings.jobs.scratch_dir = "/nonexistent";  // No job makes a clip.
  settings.jobs.history = 100;
  FakeBackend backend(options);
  const auto services = server::LoopbackServices::Start(std::move(settings), &backend).value();
  std::fprintf(out, "%d\n", services->port());
  std::fflush(out);
  char command[16];
  while (std::fscanf(in, "%15s", command) == 1) {
    if (command == std::string("hold")) backend.Hold();
    if (command == std::string("release")) backend.Release();
    if (command == std::string("tell")) {
      const std::vector<std::string> executed = backend.TakeExecuted();
      std::fprintf(out, "%lld %zu\n", static_cast<long long>(ResidentBytes()), executed.size());
      for (const std::string& tenant : executed) std::fprintf(out, "%s\n", tenant.c_str());
    } else {
      std::fprintf(out, "0 0\n");
    }
    std::fflush(out);
  }
}

/// The server's process as seen from this one.
class ServerFork {
 public:
  explicit ServerFork(const LoadOptions& options) {
    int to_server[2];
    int from_server[2];
    if (pipe2(to_server, O_CLOEXEC) != 0 || pipe2(from_server, O_CLOEXEC) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      close(to_server[1]);
      close(from_server[0]);
      Serve(options, fdopen(to_server[0], "r"), fdopen(from_server[1], "w"));
      _exit(0);
    }
    close(to_server[0]);
    close(from_server[1]);
    to_ = fdopen(to_server[1], "w");
    from_ = fdopen(from_server[0], "r");
    if (std::fscanf(from_, "%d", &port_) != 1) port_ = 0;
  }
  ~ServerFork() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  ServerFork(const ServerFork&) = delete;
  ServerFork& operator=(const ServerFork&) = delete;

  /// 0 if it does not serve.
  int port() const { return port_; }

  struct Told {
    int64_t resident_bytes = 0;
    std::vector<std::string> executed;
  };
  Told Command(const char* command) {
    std::fprintf(to_, "%s\n", command);
    std::fflush(to_);
    Told told;
    long long resident = 0;
    size_t count = 0;
    if (std::fscanf(from_, "%lld %zu", &resident, &count) != 2) return told;
    told.resident_bytes = resident;
    char tenant[65];
    while (told.executed.size() < count && std::fscanf(from_, "%64s", tenant) == 1) {
      told.executed.emplace_back(tenant);
    }
    return told;
  }

 private:
  pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  int port_ = 0;
};

/// All clients, from their connections to their end.
LoadReport RunClients(const LoadOptions& options, ServerFork* server) {
  LoadReport report;
  std::vector<std::unique_ptr<v1::VideoService::Stub>> stubs;
  for (int i = 0; i < options.clients; ++i) {
    stubs.push_back(v1::VideoService::NewStub(Connect(server->port())));
  }
  Seen held(1);
  new Call(stubs[0].get(), kHolder, options.units, &held);
  held.queued.Wait();

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
  server->Command("release");
  HealthWatch health(server->port());
  seen.ended.Wait();
  const std::vector<double> latencies = health.Stop();
  held.ended.Wait();
  report.run_seconds = absl::ToDoubleSeconds(absl::Now() - all_queued);
  report.submit_seconds = absl::ToDoubleSeconds(all_queued - start);
  report.microseconds_per_unit = 1e6 * report.run_seconds / options.jobs / options.units;
  report.health_calls = static_cast<int>(latencies.size());
  report.health_p50_ms = Percentile(latencies, 0.5);
  report.health_p99_ms = Percentile(latencies, 0.99);
  absl::MutexLock lock(&seen.mutex);
  report.finished = seen.finished;
  report.failed = seen.failed;
  report.wrong_progress = seen.wrong_progress;
  report.duplicated = seen.duplicated;
  return report;
}

LoadReport RunRound(const LoadOptions& options, ServerFork* server) {
  const int64_t before = server->Command("tell").resident_bytes;
  server->Command("hold");
  LoadReport report = RunClients(options, server);
  // The server hears of closed connections a little later.
  absl::SleepFor(absl::Seconds(1));
  const ServerFork::Told told = server->Command("tell");
  report.executed = static_cast<int>(told.executed.size());
  report.unfairness = Unfairness(told.executed, options);
  report.resident_bytes_before = before;
  report.resident_bytes_after = told.resident_bytes;
  return report;
}

}  // namespace

absl::StatusOr<std::vector<LoadReport>> RunServiceLoad(const LoadOptions& options, int rounds) {
  ServerFork server(options);
  if (server.port() == 0) return absl::InternalError("the server does not start");
  std::vector<LoadReport> reports;
  for (int round = 0; round < rounds; ++round) reports.push_back(RunRound(options, &server));
  return reports;
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
