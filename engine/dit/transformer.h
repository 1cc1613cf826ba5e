#ifndef LTX_ENGINE_DIT_TRANSFORMER_H_
#define LTX_ENGINE_DIT_TRANSFORMER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/block_tables.h"
#include "engine/dit/modality.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/recorded_forwards.h"
#include "engine/dit/rope_tables.h"
#include "engine/dit/stream_inputs.h"
#include "engine/dit/timestep_embedding.h"
#include "engine/dit/transformer_block.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"
#include "kernels/preparation.h"

namespace ltx::dit {

/// Which halves of a checkpoint are built. A single-stream model gives what the audio-video model
/// gives with the other stream absent.
enum class ModelClass : uint8_t { kAudioVideo, kVideoOnly, kAudioOnly };

/// The audio-video diffusion transformer of LTX-2.0, 2.3 and 2.5 (reference: model.py, LTXModel).
class Transformer {
 public:
  /// `loader` is positioned below "model.diffusion_model.". Unless a tensor belongs to the text
  /// side (embeddings connectors) or to a stream that `model_class` leaves out, it must be one this
  /// model has.
  ///
  /// INVALID_ARGUMENT for a config that contradicts itself, a tensor of the wrong shape, or tensors
  /// nothing uses; NOT_FOUND for a missing tensor. `keyframes_abs_pos_embedding` alone may be
  /// missing where the config declares it.
  static absl::StatusOr<std::unique_ptr<Transformer>> Load(
      const checkpoint::TransformerConfig& config, ModelClass model_class,
      checkpoint::WeightLoader loader);

  /// Builds what stays fixed over the steps of a stage; a layout that is still in use somewhere is
  /// not built again. INVALID_ARGUMENT naming field, value and
  /// what would be legal.
  absl::StatusOr<std::shared_ptr<const PreparedStream>> Prepare(StreamKind kind,
                                                                const StreamLayout& layout) const;

  /// One evaluation. `video` or `audio` is null for an absent stream. `perturbations` is empty or
  /// has one list per batch row. INVALID_ARGUMENT naming the field for inputs that do not fit the
  /// model or each other.
  ///
  /// The observer sees, per stream: "<s>_x" after the input projection, "<s>_modulation",
  /// "<s>_embedded_timestep", "<s>_prompt_modulation", "<s>_cross_scale_shift", "<s>_cross_gate"
  /// (each [B or 1, N or 1, width]), "<s>_context", and the state after each block as
  /// "block<i>_<s>".
  absl::StatusOr<StreamPair> Forward(const Modality* video, const Modality* audio,
                                     const BatchPerturbations& perturbations = {},
                                     const StageObserver& observer = nullptr) const;

  /// Whether forwards are recorded and replayed on a device that can (the default there). Without
  /// an observer only.
  void set_recording(bool on) { recording_ = on; }
  /// Records one forward anew whose recording is outdated (Recording::outdated), on an idle device.
  /// False if there is none.
  absl::StatusOr<bool> RefreshRecordings() const;
  /// The next forward of any kind is new again.
  void ForgetRecordings() { recorded_.Clear(); }
  /// Kinds of forwards that would be replayed now. Any thread may ask.
  std::vector<RecordedForwards::Kind> recorded() const { return recorded_.Recorded(); }
  /// On a device of shapes: forwards of these kinds are recorded already; see RecordedForwards.
  absl::Status AssumeRecorded(const std::vector<RecordedForwards::Kind>& kinds) {
    return recorded_.Assume(*device_, kinds);
  }
  /// Forwards that were recorded so far.
  const Preparation& prepared() const { return recorded_.prepared(); }

  Device& device() const { return *device_; }
  DType dtype() const { return dtype_; }
  const checkpoint::TransformerConfig& config() const { return config_; }
  ModelClass model_class() const { return model_class_; }
  int64_t num_blocks() const { return static_cast<int64_t>(blocks_.size()); }
  bool has_keyframe_bias() const { return keyframe_rows_.defined(); }

 private:
  /// Everything outside the blocks that belongs to one stream.
  struct StreamModel {
    StreamConfig config;
    RopeSpec rope;
    RopeSpec cross_rope;
    int64_t in_channels = 0;
    int64_t out_channels = 0;
    /// Width of the context handed in.
    int64_t context_width = 0;
    LinearWeight patchify;
    LinearWeight caption_1;
    LinearWeight caption_2;
    AdaLayerNormSingle adaln;
    AdaLayerNormSingle prompt_adaln;
    AdaLayerNormSingle cross_adaln;
    AdaLayerNormSingle cross_gate_adaln;
    BlockTables tables;
    /// Learned shift and scale of the output head, [width] each.
    Tensor head_shift;
    Tensor head_scale;
    LinearWeight proj_out;
  };
  /// One stream during a forward.
  struct StreamRun {
    BlockStream block;
    StreamState state;
    StreamModulations modulations;
    /// The embedded timestep of the output head, one vector per distinct timestep.
    RowVectors embedded;
  };

  Transformer() = default;
  absl::Status LoadStream(StreamKind kind, checkpoint::WeightLoader& loader);
  absl::Status LoadCross(checkpoint::WeightLoader& loader);
  absl::Status LoadBlocks(checkpoint::WeightLoader& loader);
  void IgnoreForeignTensors(checkpoint::WeightLoader& loader) const;

  bool Has(StreamKind kind) const;
  const StreamModel& ModelOf(StreamKind kind) const {
    return kind == StreamKind::kVideo ? video_ : audio_;
  }
  absl::Status CheckModality(StreamKind kind, const Modality& modality) const;
  absl::Status CheckPair(const Modality* video, const Modality* audio,
                         const BatchPerturbations& perturbations) const;

  absl::StatusOr<std::shared_ptr<const PreparedStream>> BuildLayout(
      StreamKind kind, const StreamLayout& layout) const;
  /// Brings what the host holds to the device.
  absl::StatusOr<StreamInputs> StageInputs(StreamKind kind, const Modality& modality,
                                           const Modality* other) const;
  /// The forward itself: device work alone.
  absl::StatusOr<StreamPair> Evaluate(const StreamInputs* video, const StreamInputs* audio,
                                      const BatchPerturbations& perturbations,
                                      const StageObserver& observer) const;
  /// The same as recordings want it.
  auto EvaluateUnobserved() const {
    return [this](const StreamInputs* video, const StreamInputs* audio,
                  const BatchPerturbations& perturbations) {
      return Evaluate(video, audio, perturbations, nullptr);
    };
  }
  absl::Status RunBlocks(StreamRun* video, StreamRun* audio,
                         const BatchPerturbations& perturbations,
                         const StageObserver& observer) const;

  absl::StatusOr<StreamRun> Begin(StreamKind kind, const StreamInputs& inputs,
                                  const StageObserver& observer) const;
  absl::StatusOr<Tensor> ProjectInput(StreamKind kind, const StreamInputs& inputs) const;
  absl::Status BeginModulation(StreamKind kind, const StreamInputs& inputs, StreamRun* run,
                               const StageObserver& observer) const;
  absl::StatusOr<Tensor> Finish(StreamKind kind, const StreamRun& run) const;

  Device* device_ = nullptr;
  DType dtype_ = DType::kF32;
  checkpoint::TransformerConfig config_;
  ModelClass model_class_ = ModelClass::kAudioVideo;
  StreamModel video_;
  StreamModel audio_;
  std::vector<TransformerBlock> blocks_;
  /// [2, width]: nothing, then the learned bias of single-frame tokens. Undefined: the model has
  /// none.
  Tensor keyframe_rows_;
  /// [1, width] of zeros: the scale beside that bias.
  Tensor keyframe_scale_;

  bool recording_ = true;
  /// Driven by the one thread that drives the device.
  mutable RecordedForwards recorded_;
  /// Layouts that were prepared, as long as anybody holds them.
  mutable std::list<std::pair<StreamLayout, std::weak_ptr<const PreparedStream>>> layouts_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TRANSFORMER_H_
