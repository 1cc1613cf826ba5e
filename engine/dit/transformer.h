#ifndef LTX_ENGINE_DIT_TRANSFORMER_H_
#define LTX_ENGINE_DIT_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/modality.h"
#include "engine/dit/perturbations.h"
#include "engine/dit/rope_tables.h"
#include "engine/dit/timestep_embedding.h"
#include "engine/dit/transformer_block.h"
#include "engine/stage_observer.h"
#include "kernels/device.h"

namespace ltx::dit {

/// Which halves of a checkpoint are built. A single-stream model gives what the audio-video model
/// gives with the other stream absent.
enum class ModelClass : uint8_t { kAudioVideo, kVideoOnly, kAudioOnly };

/// Velocities [B, N, C] of the streams that were given: latent = x0 + sigma * velocity. Also the
/// shape of their denoised latents.
struct StreamPair {
  Tensor video;
  Tensor audio;
};

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

  /// Builds what stays fixed over the steps of a stage. INVALID_ARGUMENT naming field, value and
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
    /// Learned shift and scale of the output head, [width] each.
    Tensor head_shift;
    Tensor head_scale;
    LinearWeight proj_out;
  };
  /// One stream during a forward.
  struct StreamRun {
    BlockStream block;
    Tensor state;
    /// The embedded timestep of the output head, one vector per distinct timestep.
    RowVectors embedded;
    /// The distinct timesteps, scaled for the timestep MLPs.
    std::vector<float> timesteps;
    /// Which of them each timestep of the modality is; for observers.
    std::vector<int32_t> timestep_index;
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

  absl::StatusOr<StreamRun> Begin(StreamKind kind, const Modality& modality, const Modality* other,
                                  const StageObserver& observer) const;
  absl::StatusOr<Tensor> ProjectInput(StreamKind kind, const Modality& modality) const;
  absl::Status BeginModulation(StreamKind kind, const Modality& modality, StreamRun* run,
                               const StageObserver& observer) const;
  absl::Status BeginCross(StreamKind kind, const Modality& modality, const Modality& other,
                          StreamRun* run, const StageObserver& observer) const;
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
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TRANSFORMER_H_
