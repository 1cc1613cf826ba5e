#ifndef LTX_ENGINE_DIT_RECORDED_FORWARDS_H_
#define LTX_ENGINE_DIT_RECORDED_FORWARDS_H_

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/stream_inputs.h"
#include "kernels/device.h"
#include "kernels/preparation.h"

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
  void Clear();

  /// The kinds of forwards that are recorded, in words that mean the same in another object of this
  /// process, with a model of the same shape. Any thread may ask.
  std::vector<std::string> Recorded() const;
  /// For a run on shapes that stands for a model where these kinds are recorded: it goes its way as
  /// ever, memory included, but does not count them as prepared.
  void Assume(std::vector<std::string> kinds) { assumed_ = std::move(kinds); }
  /// Forwards issued that later ones replay, and forwards recorded, so far.
  const Preparation& prepared() const { return prepared_; }

 private:
  struct Entry {
    std::string key;
    /// The same without addresses.
    std::string kind;
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

  bool IsAssumed(const std::string& kind) const;
  /// Tells other threads what is recorded now.
  void Publish();

  /// Most recently used first.
  std::list<Entry> entries_;
  std::vector<std::string> assumed_;
  Preparation prepared_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> published_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_RECORDED_FORWARDS_H_
