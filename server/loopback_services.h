#ifndef LTX_SERVER_LOOPBACK_SERVICES_H_
#define LTX_SERVER_LOOPBACK_SERVICES_H_

#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/memory_ledger.h"
#include "server/auth/authenticator.h"
#include "server/condition/condition_service.h"
#include "server/condition/condition_store.h"
#include "server/generation_backend.h"
#include "server/job_service.h"
#include "server/jobs/fake_generation.h"
#include "server/jobs/heartbeat.h"
#include "server/jobs/job_manager.h"
#include "server/metrics/server_metrics.h"
#include "server/video_service.h"

namespace ltx::server {

/// The services over an engine of the caller's, on a loopback port of this process.
class LoopbackServices {
 public:
  struct Options {
    JobManagerOptions jobs;
    SchedulerHooks hooks;
    ConditionStore::Options store;
    ConditionService::Options uploads;
    Authenticator::Options authentication;
  };
  /// `backend` must outlive the services. Errors as JobManager::Create() and
  /// Authenticator::Create().
  static absl::StatusOr<std::unique_ptr<LoopbackServices>> Start(Options options,
                                                                 GenerationBackend* backend);
  /// Ends all jobs and calls.
  ~LoopbackServices();
  LoopbackServices(const LoopbackServices&) = delete;
  LoopbackServices& operator=(const LoopbackServices&) = delete;

  int port() const { return port_; }
  /// HOST:PORT.
  std::string address() const;
  JobManager& jobs() { return *jobs_; }

 private:
  LoopbackServices(Options options, std::unique_ptr<JobManager> jobs,
                   std::unique_ptr<Authenticator> authenticator, GenerationBackend* backend);

  MemoryLedger ledger_;
  ServerMetrics metrics_;
  const std::unique_ptr<JobManager> jobs_;
  const std::unique_ptr<Authenticator> authenticator_;
  Heartbeat heartbeat_;
  ConditionStore store_;
  ConditionService conditions_;
  VideoService video_service_;
  JobService job_service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

/// An engine of FakeGenerations; the prompt of a request says which. Thread-safe.
class FakeEngine final : public GenerationBackend {
 public:
  /// What jobs with this prompt do. Others are three units of no time.
  void Set(const std::string& prompt, FakeGeneration::Options work);

  absl::StatusOr<Prepared> Prepare(const v1::GenerateVideoRequest& request) override;
  void Describe(v1::HealthResponse* response) const override;

 private:
  absl::Mutex mutex_;
  std::map<std::string, FakeGeneration::Options> work_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::server

#endif  // LTX_SERVER_LOOPBACK_SERVICES_H_
