#ifndef LTX_SERVER_GENERATION_SINK_H_
#define LTX_SERVER_GENERATION_SINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/media_file.h"

namespace ltx::server {

/// Where a generation job tells what happens. Calls do not block on the receiver: a slow client
/// must not hold up the device. Thread-safe.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  virtual void Send(v1::GenerateVideoEvent event) = 0;
  /// The clip is done: `media` (null if the clip was written to a path) goes out in chunks, then
  /// `finished`, then the stream ends with OK. Nothing may follow.
  virtual void Complete(std::unique_ptr<MediaFile> media, v1::GenerationReport report) = 0;
  /// The job ended without a clip. Nothing may follow.
  virtual void Fail(const absl::Status& status) = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GENERATION_SINK_H_
