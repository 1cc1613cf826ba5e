#include "server/loopback_services.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"

namespace ltx::server {

absl::StatusOr<std::unique_ptr<LoopbackServices>> LoopbackServices::Start(
    Options options, GenerationBackend* backend) {
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<JobManager> jobs,
                       JobManager::Create(options.jobs, options.hooks));
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<Authenticator> authenticator,
                       Authenticator::Create(options.authentication));
  auto services = absl::WrapUnique(
      new LoopbackServices(std::move(options), std::move(jobs), std::move(authenticator), backend));
  if (services->server_ == nullptr) return absl::InternalError("the server does not start");
  return services;
}

LoopbackServices::LoopbackServices(Options options, std::unique_ptr<JobManager> jobs,
                                   std::unique_ptr<Authenticator> authenticator,
                                   GenerationBackend* backend)
    : jobs_(std::move(jobs)),
      authenticator_(std::move(authenticator)),
      heartbeat_([this](absl::Time now) { jobs_->Sweep(now); }),
      store_(std::move(options.store), &ledger_, &metrics_),
      conditions_(std::move(options.uploads), &store_),
      video_service_(backend, jobs_.get(), &heartbeat_, &metrics_, &conditions_,
                     authenticator_.get()),
      job_service_(jobs_.get(), &heartbeat_, authenticator_.get()) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&video_service_);
  builder.RegisterService(&job_service_);
  server_ = builder.BuildAndStart();
}

LoopbackServices::~LoopbackServices() {
  if (server_ == nullptr) return;
  jobs_->Drain(absl::ZeroDuration());
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  server_->Wait();
}

std::string LoopbackServices::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FakeEngine::Set(const std::string& prompt, FakeGeneration::Options work) {
  absl::MutexLock lock(&mutex_);
  work_[prompt] = std::move(work);
}

absl::StatusOr<GenerationBackend::Prepared> FakeEngine::Prepare(
    const v1::GenerateVideoRequest& request) {
  FakeGeneration::Options work;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = work_.find(request.prompt());
    if (found != work_.end()) work = found->second;
  }
  Prepared prepared;
  prepared.expected_seconds = work.expected_seconds;
  prepared.make_task = [work](const std::string& id, std::shared_ptr<GenerationSink> sink) {
    return std::make_unique<FakeGeneration>(id, work, std::move(sink));
  };
  return prepared;
}

void FakeEngine::Describe(v1::HealthResponse* response) const {
  response->mutable_model()->set_name("fake");
}

}  // namespace ltx::server
