#ifndef LTX_ENGINE_DIT_RECORDED_FORWARDS_H_
#define LTX_ENGINE_DIT_RECORDED_FORWARDS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/stream_inputs.h"
#include "kernels/device.h"
#include "kernels/preparation.h"

namespace ltx::dit {

/// Memory that stays with a recording, beside the pool that all of a device share.
struct RecordingBytes {
  /// Inputs and results.
  int64_t own = 0;
  /// Tables of the layouts, which others may use as well.
  int64_t tables = 0;
};

/// Forwards that a device has recorded (CUDA graphs), the most recently used ones. Two forwards
/// share a recording if they agree in all but the values of their inputs: layouts, shapes, masks
/// present and perturbations. Each is recorded when it comes first, and replayed over copied inputs
/// from then on.
class RecordedForwards {
 public:
  using Evaluate = absl::FunctionRef<absl::StatusOr<StreamPair>(
      const StreamInputs* video, const StreamInputs* audio,
      const BatchPerturbations& perturbations)>;

  /// `video` or `audio` may be null. A failure to record is a failure of the forward.
  absl::StatusOr<StreamPair> Run(Device& device, const StreamInputs* video,
                                 const StreamInputs* audio, const BatchPerturbations& perturbations,
                                 Evaluate evaluate);

  /// Records one anew that is outdated; false if there is none. Run does so, too, when it comes to
  /// one.
  absl::StatusOr<bool> Refresh(Device& device, Evaluate evaluate);

  /// Lets all recordings go.
  void Clear();

  /// A recording as a copy of the model, in this process and of the same shape, knows it.
  struct Kind {
    /// What it is a recording of.
    std::string name;
    RecordingBytes bytes;
  };
  /// What would be replayed now, the most recently used first. Any thread may ask.
  std::vector<Kind> Recorded() const;
  /// For a run on shapes that stands for a model with these recordings, in place of its own: their
  /// memory is booked until others take their places. Where one would be replayed it is recorded
  /// all the same, but does not count as prepared.
  absl::Status Assume(Device& device, const std::vector<Kind>& kinds);
  /// Forwards recorded so far.
  const Preparation& prepared() const { return prepared_; }

 private:
  struct Entry {
    /// Empty: assumed.
    std::string key;
    /// The same without addresses.
    std::string kind;
    /// Kept alive, so that their addresses stand for them in the key.
    std::shared_ptr<const PreparedStream> video_layout;
    std::shared_ptr<const PreparedStream> audio_layout;
    BatchPerturbations perturbations;
    /// Where a replay reads.
    std::optional<StreamInputs> video;
    std::optional<StreamInputs> audio;
    /// Where it leaves its results.
    StreamPair results;
    std::shared_ptr<const Recording> recording;
    /// What an assumed one keeps.
    Tensor assumed;
    RecordingBytes bytes;
  };
  struct Published {
    Kind kind;
    std::shared_ptr<const Recording> recording;
  };

  static Entry MakeEntry(std::string key, const StreamInputs* video, const StreamInputs* audio,
                         const BatchPerturbations& perturbations);
  /// Takes in what is not there yet, and records it.
  absl::Status Add(Device& device, const StreamInputs* video, const StreamInputs* audio,
                   Evaluate evaluate, Entry entry);
  /// Records an entry that has its inputs.
  static absl::Status Record(Device& device, Evaluate evaluate, Entry* entry);
  /// Lets those that were used longest ago go, so that one more may come.
  void MakeRoom(const RecordingBytes& bytes);
  /// Tells other threads what is recorded now.
  void Publish();

  /// Most recently used first.
  std::list<Entry> entries_;
  Preparation prepared_;
  mutable absl::Mutex mutex_;
  std::vector<Published> published_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_RECORDED_FORWARDS_H_
