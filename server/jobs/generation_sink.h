#ifndef LTX_SERVER_JOBS_GENERATION_SINK_H_
#define LTX_SERVER_JOBS_GENERATION_SINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::server {

/// Where the work of a job tells what happens. Calls do not wait for those who read it: a slow
/// client must not hold up the device.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  /// Units of this phase come next.
  virtual void Enter(v1::Phase phase) = 0;
  /// `admitted` once, then `progress` after every unit.
  virtual void Send(v1::GenerateVideoEvent event) = 0;
  /// Where a clip for the client is to be written, whole or not at all.
  virtual std::string ClipPath(absl::string_view mime_type) const = 0;
  /// The clip is done and judged: it lies at ClipPath(mime_type), or, without a type, at
  /// report.output_path. RESOURCE_EXHAUSTED (ARTIFACT_QUOTA) if there is no room to keep it.
  virtual absl::Status Deliver(v1::GenerationReport report, absl::string_view mime_type) = 0;
  /// The same for what there is of a job that ends with an error: it lies at
  /// ClipPath(kPartialMimeType), or, without a type, at partial.path.
  virtual absl::Status DeliverPartial(v1::PartialResult partial, absl::string_view mime_type) = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_GENERATION_SINK_H_
