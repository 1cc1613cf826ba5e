#ifndef LTX_TESTS_END_TO_END_BACKGROUND_JOB_H_
#define LTX_TESTS_END_TO_END_BACKGROUND_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/video_client.h"
#include "tests/end_to_end/limit.h"

namespace ltx::testing {

/// A request of the client library on a thread of its own, with what it was told so far.
class BackgroundJob {
 public:
  using Events = std::vector<v1::GenerateVideoEvent>;

  BackgroundJob(const std::string& address, v1::GenerateVideoRequest request,
                std::string output_path, absl::Time deadline = absl::InfiniteFuture());
  /// Cancels it, if it still runs.
  ~BackgroundJob();
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;

  /// Waits until an event fulfils `wanted`; false if the job ends or `limit` passes first.
  bool WaitForEvent(const std::function<bool(const v1::GenerateVideoEvent&)>& wanted,
                    absl::Duration limit = kLimit);
  bool WaitForAdmission();
  /// The id that the first event told; call it after one.
  std::string id() const;
  Events events() const;
  bool ended() const;
  void Cancel() { client_->Cancel(); }
  /// Waits for the end. Once.
  absl::StatusOr<v1::GenerationReport> Join();

 private:
  const std::unique_ptr<client::VideoClient> client_;
  mutable absl::Mutex mutex_;
  Events events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::StatusOr<v1::GenerationReport>> result_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

/// A request for 128x128 pixels and 17 frames in two stages: every phase, little work.
v1::GenerateVideoRequest SmallRequest(int64_t seed);
/// A second of work: 256x256 pixels, 49 frames, one stage.
v1::GenerateVideoRequest LongRequest(int64_t seed);
/// As EndlessClipFlags().
v1::GenerateVideoRequest EndlessRequest(int64_t seed);

/// What Health says; fails the test if it does not answer.
v1::HealthResponse ReadHealth(const std::string& address);
/// Waits until no job runs or waits.
v1::HealthResponse WaitUntilIdle(const std::string& address);

}  // namespace ltx::testing

#endif  // LTX_TESTS_END_TO_END_BACKGROUND_JOB_H_
