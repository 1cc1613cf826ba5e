#ifndef LTX_SERVER_CONDITION_CONDITION_SERVICE_H_
#define LTX_SERVER_CONDITION_CONDITION_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <deque>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/condition/condition_store.h"
#include "server/condition/inspect.h"

namespace ltx::server {

class ConditionUpload;

/// Takes uploads in: bytes on gRPC's threads, decoding on one thread of its own, so that neither a
/// slow client nor a long clip holds up anything but itself.
class ConditionService {
 public:
  struct Options {
    InspectOptions inspect;
    /// For a whole upload, decoding included.
    absl::Duration upload_limit = absl::Minutes(2);
  };

  /// `store` must outlive the service.
  ConditionService(Options options, ConditionStore* store);
  /// Ends what is under way with UNAVAILABLE. gRPC must be done with all reactors first, or be
  /// about to finish them.
  ~ConditionService();
  ConditionService(const ConditionService&) = delete;
  ConditionService& operator=(const ConditionService&) = delete;

  /// The server's end of one Condition call of `tenant`.
  grpc::ServerReadReactor<v1::ConditionRequest>* Receive(const std::string& tenant,
                                                         v1::ConditionResponse* response);

  /// The request with its handles looked up: a prompt handle becomes the prompt, and every handle
  /// in `conditions` is there. NOT_FOUND (CONDITION_NOT_FOUND) naming the handle, INVALID_ARGUMENT
  /// naming the field for a handle of the wrong kind or values out of range.
  absl::StatusOr<v1::GenerateVideoRequest> Resolve(const std::string& tenant,
                                                   const v1::GenerateVideoRequest& request);

  ConditionStore& store() { return *store_; }
  bool stopping() const { return stopping_.load(); }
  /// The error of an upload that exceeds options.upload_limit.
  absl::Status TooSlow() const;

 private:
  friend class ConditionUpload;
  /// Queues a complete upload for decoding.
  void Decode(ConditionUpload* upload);
  void Forget(ConditionUpload* upload);
  void Loop();
  /// Ends uploads that take too long.
  void Expire();

  const Options options_;
  ConditionStore* const store_;
  absl::Mutex mutex_;
  std::set<ConditionUpload*> uploads_ ABSL_GUARDED_BY(mutex_);
  std::deque<ConditionUpload*> ready_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::thread decoder_;
  std::thread watcher_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_CONDITION_CONDITION_SERVICE_H_
