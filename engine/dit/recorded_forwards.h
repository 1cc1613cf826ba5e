#ifndef LTX_ENGINE_DIT_RECORDED_FORWARDS_H_
#define LTX_ENGINE_DIT_RECORDED_FORWARDS_H_

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/stream_inputs.h"
#include "kernels/device.h"

namespace ltx::dit {

/// Forwards that a device has recorded (CUDA graphs), the most recently used few. Two forwards
/// share a recording if they agree in all but the values of their inputs: layouts, shapes, masks
/// present and perturbations. The first of a kind runs as it is, the second is recorded, later ones
/// are replayed over copied inputs.
class RecordedForwards {
 public:
  using Evaluate = absl::FunctionRef<absl::StatusOr<StreamPair>(const StreamInputs* video,
                                                                const StreamInputs* audio)>;

  /// `video` or `audio` may be null. A failure to record is a failure of the forward.
  absl::StatusOr<StreamPair> Run(Device& device, const StreamInputs* video,
                                 const StreamInputs* audio, const BatchPerturbations& perturbations,
                                 Evaluate evaluate);

  /// Lets all recordings go.
  void Clear() { entries_.clear(); }

 private:
  struct Entry {
    std::string key;
    /// Kept alive, so that their addresses stand for them in the key.
    std::shared_ptr<const PreparedStream> video_layout;
    std::shared_ptr<const PreparedStream> audio_layout;
    /// Where a replay reads; absent until the forward is recorded.
    std::optional<StreamInputs> video;
    std::optional<StreamInputs> audio;
    /// Where it leaves its results.
    StreamPair results;
    std::unique_ptr<Recording> recording;
  };

  /// Most recently used first.
  std::list<Entry> entries_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_RECORDED_FORWARDS_H_
