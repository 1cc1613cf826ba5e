#ifndef LTX_SERVER_CONDITION_CONDITION_UPLOAD_H_
#define LTX_SERVER_CONDITION_CONDITION_UPLOAD_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/condition/condition_store.h"
#include "server/condition/inspect.h"

namespace ltx::server {

class ConditionService;

/// The server's end of one Condition call: header, chunks, then decoding by the service. Deletes
/// itself when gRPC is done with it.
class ConditionUpload final : public grpc::ServerReadReactor<v1::ConditionRequest> {
 public:
  ConditionUpload(ConditionService* service, std::string tenant, absl::Time expires,
                  v1::ConditionResponse* response);

  /// Decodes what came and ends the call; on the service's thread, once.
  void Inspect(const InspectOptions& options);
  /// Ends the call with `status` if it still reads. Once it is being decoded the decoder's thread
  /// alone may end it, since the object goes away with the call.
  void EndReading(const absl::Status& status);
  /// OK while it should go on.
  absl::Status KeepGoing() const;
  absl::Time expires() const { return expires_; }

  // ServerReadReactor.
  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  absl::Status Take(const v1::ConditionRequest& message);
  absl::Status Begin(const v1::ConditionHeader& header);
  /// Sends the status and writes the log line. The object may be gone when it returns.
  void End(const absl::Status& status);

  ConditionService* const service_;
  const std::string tenant_;
  const absl::Time expires_;
  v1::ConditionResponse* const response_;
  v1::ConditionRequest message_;
  v1::ConditionHeader header_;
  std::unique_ptr<ConditionStore::Upload> upload_;

  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  /// Whether messages are awaited; false from the end of the stream, or of the call, on.
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_CONDITION_CONDITION_UPLOAD_H_
