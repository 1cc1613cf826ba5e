#include "engine/dit/transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

std::vector<float> Scaled(absl::Span<const float> values, float factor) {
  std::vector<float> scaled(values.begin(), values.end());
  for (float& value : scaled) value *= factor;
  return scaled;
}

/// One value if all rows of the batch agree, else one per row: what RowVectors without an index
/// understands.
std::vector<float> PerSample(const std::vector<float>& sigma) {
  const bool same = std::all_of(sigma.begin(), sigma.end(), [&](float s) { return s == sigma[0]; });
  return same ? std::vector<float>{sigma[0]} : sigma;
}

/// Shows rows [U, W] as [batch, count, W], `index` naming the row of every [batch, count].
absl::Status ObserveRows(Device& device, const StageObserver& observer, const std::string& name,
                         const Tensor& rows, absl::Span<const int32_t> index, int64_t batch) {
  if (!observer) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const Tensor gathered, device.GatherRows(rows, index));
  LTX_ASSIGN_OR_RETURN(
      const Tensor shown,
      gathered.Reshape({batch, static_cast<int64_t>(index.size()) / batch, rows.dim(1)}));
  observer(name, shown);
  return absl::OkStatus();
}

/// The row of every batch row for vectors that PerSample made.
std::vector<int32_t> SampleIndex(const Tensor& rows, int64_t batch) {
  std::vector<int32_t> index(batch, 0);
  for (int64_t b = 0; b < batch && rows.dim(0) > 1; ++b) index[b] = static_cast<int32_t>(b);
  return index;
}

/// The row of every timestep handed in, one per token or one per batch row.
std::vector<int32_t> TimestepIndex(const UniqueTimesteps& unique, int64_t count, int64_t batch,
                                   int64_t tokens) {
  std::vector<int32_t> index(count, 0);
  const int64_t stride = count == batch * tokens ? 1 : tokens;
  for (int64_t i = 0; i < count && !unique.index.empty(); ++i) index[i] = unique.index[i * stride];
  return index;
}

absl::Status CheckSigma(absl::Span<const float> sigma, int64_t batch, absl::string_view name) {
  const int64_t count = static_cast<int64_t>(sigma.size());
  if (count != 1 && count != batch) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s.sigma holds %d values; 1 or %d (the batch) would be legal", name, count, batch));
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(sigma[i])) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s.sigma[%d] is %g; it must be finite", name, i, sigma[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const Tensor& tensor, DType dtype, absl::string_view name) {
  if (!tensor.defined() || tensor.rank() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has shape ", tensor.shape().ToString(),
                                                   "; [batch, tokens, channels] would be legal"));
  }
  if (tensor.dtype() != dtype) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is ", DTypeName(tensor.dtype()),
                                                   "; the model computes in ", DTypeName(dtype)));
  }
  return absl::OkStatus();
}

absl::Status CheckExtent(int64_t extent, int64_t expected, absl::string_view name,
                         absl::string_view what) {
  if (extent == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is %d; it must be %d, %s", name, extent, expected, what));
}

/// A context per sample, or rows that name one for each.
absl::Status CheckContextRows(const Modality& modality, int64_t batch, absl::string_view name) {
  const std::vector<int32_t>& rows = modality.context_rows;
  const int64_t contexts = modality.context.dim(0);
  if (rows.empty()) {
    return CheckExtent(contexts, batch, absl::StrCat(name, ".context batch"), "the latent's batch");
  }
  LTX_RETURN_IF_ERROR(CheckExtent(static_cast<int64_t>(rows.size()), batch,
                                  absl::StrCat(name, ".context_rows length"),
                                  "the latent's batch"));
  for (int64_t b = 0; b < batch; ++b) {
    if (rows[b] < 0 || rows[b] >= contexts) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s.context_rows[%d] is %d; 0 to %d would be legal", name, b, rows[b], contexts - 1));
    }
  }
  return absl::OkStatus();
}

/// The sigma that each context is modulated with.
absl::StatusOr<std::vector<float>> SigmaOfContexts(const Modality& modality,
                                                   absl::string_view name) {
  const std::vector<float> sigma = PerSample(modality.sigma);
  if (modality.context_rows.empty() || sigma.size() == 1) return sigma;
  std::vector<float> of_contexts(modality.context.dim(0), 0.0f);
  std::vector<bool> seen(of_contexts.size(), false);
  for (size_t b = 0; b < sigma.size(); ++b) {
    const int32_t row = modality.context_rows[b];
    if (seen[row] && of_contexts[row] != sigma[b]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s.sigma[%d] is %g; samples that share a context must have one sigma, here %g", name, b,
          sigma[b], of_contexts[row]));
    }
    of_contexts[row] = sigma[b];
    seen[row] = true;
  }
  return of_contexts;
}

/// Concurrently, or in turns where an observer looks at values in between.
absl::Status Beside(Device& device, const StageObserver& observer,
                    absl::FunctionRef<absl::Status()> first,
                    absl::FunctionRef<absl::Status()> second) {
  if (!observer) return device.Concurrently(first, second);
  LTX_RETURN_IF_ERROR(first());
  return second();
}

}  // namespace

bool Transformer::Has(StreamKind kind) const {
  return model_class_ == ModelClass::kAudioVideo ||
         (kind == StreamKind::kVideo) == (model_class_ == ModelClass::kVideoOnly);
}

absl::StatusOr<std::shared_ptr<const PreparedStream>> Transformer::Prepare(
    StreamKind kind, const StreamLayout& layout) const {
  layouts_.remove_if([](const auto& entry) { return entry.second.expired(); });
  for (const auto& [known, entry] : layouts_) {
    const std::shared_ptr<const PreparedStream> prepared = entry.lock();
    if (prepared != nullptr && prepared->kind == kind && known == layout) return prepared;
  }
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedStream> prepared, BuildLayout(kind, layout));
  layouts_.emplace_back(layout, prepared);
  return prepared;
}

absl::StatusOr<std::shared_ptr<const PreparedStream>> Transformer::BuildLayout(
    StreamKind kind, const StreamLayout& layout) const {
  const absl::string_view name = StreamName(kind);
  if (!Has(kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " tokens were given to a model that has no ", name, " stream"));
  }
  if (layout.batch < 1 || layout.tokens < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s layout has batch %d and %d tokens; at least 1 and 0 would be legal",
                        name, layout.batch, layout.tokens));
  }
  const StreamModel& model = ModelOf(kind);
  auto prepared = std::make_shared<PreparedStream>();
  prepared->kind = kind;
  prepared->fingerprint =
      absl::HashOf(layout.batch, layout.tokens, layout.positions, layout.keyframes_mask,
                   layout.attention_mask.has_value(), layout.has_keyframe_slots);
  prepared->batch = layout.batch;
  prepared->tokens = layout.tokens;
  const int64_t axes = static_cast<int64_t>(model.rope.max_position.size());
  absl::StatusOr<RopeTable> rope =
      BuildRopeTable(*device_, model.rope, layout.positions, layout.batch, layout.tokens, dtype_);
  if (!rope.ok()) {
    return absl::Status(rope.status().code(), absl::StrCat(name, " ", rope.status().message()));
  }
  prepared->rope = *std::move(rope);
  if (model_class_ == ModelClass::kAudioVideo) {
    const std::vector<float> times =
        FirstAxisPositions(layout.positions, layout.batch, axes, layout.tokens);
    LTX_ASSIGN_OR_RETURN(prepared->cross_rope, BuildRopeTable(*device_, model.cross_rope, times,
                                                              layout.batch, layout.tokens, dtype_));
  }
  if (layout.attention_mask.has_value()) {
    LTX_ASSIGN_OR_RETURN(
        prepared->self_bias,
        SelfAttentionBias(*device_, *layout.attention_mask, layout.batch, layout.tokens, dtype_,
                          absl::StrCat(name, ".attention_mask")));
  }
  if (layout.has_keyframe_slots && !(kind == StreamKind::kVideo && has_keyframe_bias())) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " keyframe slots were requested, but this model has no keyframe embedding (config ",
        "key use_keyframes_abs_pos_embedding with tensor keyframes_abs_pos_embedding)"));
  }
  if (layout.keyframes_mask.empty()) return prepared;
  LTX_RETURN_IF_ERROR(CheckExtent(static_cast<int64_t>(layout.keyframes_mask.size()),
                                  layout.batch * layout.tokens,
                                  absl::StrCat(name, ".keyframes_mask length"), "batch * tokens"));
  if (kind == StreamKind::kVideo && has_keyframe_bias()) {
    for (const float mask : layout.keyframes_mask) {
      prepared->keyframe_index.push_back(mask > 0.0f ? 1 : 0);
    }
  }
  return prepared;
}

absl::Status Transformer::CheckModality(StreamKind kind, const Modality& modality) const {
  const std::string name(StreamName(kind));
  if (!Has(kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " tokens were given to a model that has no ", name, " stream"));
  }
  if (modality.prepared == nullptr || modality.prepared->kind != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".prepared must come from Prepare() for the ", name, " stream"));
  }
  const StreamModel& model = ModelOf(kind);
  const PreparedStream& prepared = *modality.prepared;
  LTX_RETURN_IF_ERROR(CheckTensor(modality.latent, dtype_, name + ".latent"));
  const int64_t batch = modality.latent.dim(0);
  if (batch < 1 || (prepared.batch != 1 && prepared.batch != batch)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s.latent has batch %d, its positions have %d; equal ones, or positions of batch 1 would "
        "be legal",
        name, batch, prepared.batch));
  }
  LTX_RETURN_IF_ERROR(CheckExtent(modality.latent.dim(1), prepared.tokens, name + ".latent tokens",
                                  "the number of positions"));
  LTX_RETURN_IF_ERROR(CheckExtent(modality.latent.dim(2), model.in_channels,
                                  name + ".latent channels",
                                  "the config's latent channels of the stream"));
  LTX_RETURN_IF_ERROR(CheckTensor(modality.context, dtype_, name + ".context"));
  LTX_RETURN_IF_ERROR(CheckContextRows(modality, batch, name));
  LTX_RETURN_IF_ERROR(CheckExtent(modality.context.dim(2), model.context_width,
                                  name + ".context width", "the config's width of text tokens"));
  return CheckSigma(modality.sigma, batch, name);
}

absl::Status Transformer::CheckPair(const Modality* video, const Modality* audio,
                                    const BatchPerturbations& perturbations) const {
  if (video == nullptr && audio == nullptr) {
    return absl::InvalidArgumentError("neither video nor audio was given; at least one is needed");
  }
  if (video != nullptr) LTX_RETURN_IF_ERROR(CheckModality(StreamKind::kVideo, *video));
  if (audio != nullptr) LTX_RETURN_IF_ERROR(CheckModality(StreamKind::kAudio, *audio));
  const int64_t batch = (video != nullptr ? video : audio)->latent.dim(0);
  if (video != nullptr && audio != nullptr) {
    LTX_RETURN_IF_ERROR(
        CheckExtent(audio->latent.dim(0), batch, "audio.latent batch", "video.latent's batch"));
  }
  if (perturbations.empty()) return absl::OkStatus();
  return CheckExtent(static_cast<int64_t>(perturbations.size()), batch, "perturbations length",
                     "the batch (or 0 for none)");
}

absl::StatusOr<StreamInputs> Transformer::StageInputs(StreamKind kind, const Modality& modality,
                                                      const Modality* other) const {
  const StreamModel& model = ModelOf(kind);
  const std::string name(StreamName(kind));
  const int64_t batch = modality.latent.dim(0);
  const int64_t tokens = modality.latent.dim(1);
  StreamInputs inputs;
  inputs.prepared = modality.prepared;
  inputs.enabled = modality.enabled;
  inputs.latent = modality.latent;
  inputs.context = modality.context;
  inputs.context_rows = modality.context_rows;
  if (modality.context_mask.has_value()) {
    LTX_ASSIGN_OR_RETURN(inputs.context_bias,
                         ContextBias(*device_, *modality.context_mask, batch, tokens,
                                     modality.context.dim(1), dtype_, name + ".context_mask"));
  }
  if (const std::vector<int32_t>& marked = modality.prepared->keyframe_index; !marked.empty()) {
    std::vector<int32_t> index;
    index.reserve(batch * tokens);
    while (static_cast<int64_t>(index.size()) < batch * tokens) {
      index.insert(index.end(), marked.begin(), marked.end());
    }
    LTX_ASSIGN_OR_RETURN(inputs.keyframe_index, TensorFromInts(*device_, index, {batch * tokens}));
  }

  const float to_timestep = static_cast<float>(config_.timestep_scale_multiplier);
  LTX_ASSIGN_OR_RETURN(const UniqueTimesteps unique,
                       GroupTimesteps(modality.timesteps, batch, tokens, name + ".timesteps"));
  inputs.timestep_of =
      TimestepIndex(unique, static_cast<int64_t>(modality.timesteps.size()), batch, tokens);
  const auto sinusoids = [&](const std::vector<float>& values) {
    return SinusoidTensor(*device_, values, dtype_);
  };
  LTX_ASSIGN_OR_RETURN(inputs.timesteps, sinusoids(Scaled(unique.values, to_timestep)));
  if (!unique.index.empty()) {
    LTX_ASSIGN_OR_RETURN(inputs.timestep_index,
                         TensorFromInts(*device_, unique.index, {batch * tokens}));
  }
  if (model.prompt_adaln.defined()) {
    LTX_ASSIGN_OR_RETURN(const std::vector<float> sigma, SigmaOfContexts(modality, name));
    LTX_ASSIGN_OR_RETURN(inputs.prompt_timesteps, sinusoids(Scaled(sigma, to_timestep)));
  }
  if (other != nullptr) {
    // Two factors, each rounded: first to a timestep, then by the ratio of the two multipliers.
    const float ratio = static_cast<float>(config_.av_ca_timestep_scale_multiplier /
                                           config_.timestep_scale_multiplier);
    LTX_ASSIGN_OR_RETURN(inputs.gate_timesteps,
                         sinusoids(Scaled(Scaled(PerSample(other->sigma), to_timestep), ratio)));
  }
  return inputs;
}

absl::StatusOr<Tensor> Transformer::ProjectInput(StreamKind kind,
                                                 const StreamInputs& inputs) const {
  LTX_ASSIGN_OR_RETURN(const Tensor x, device_->Linear(inputs.latent, ModelOf(kind).patchify));
  if (!inputs.keyframe_index.defined()) return x;
  return device_->Modulate(x, {keyframe_scale_, Tensor(), 0},
                           {keyframe_rows_, inputs.keyframe_index, 0});
}

absl::Status Transformer::BeginModulation(StreamKind kind, const StreamInputs& inputs,
                                          StreamRun* run, const StageObserver& observer) const {
  const StreamModel& model = ModelOf(kind);
  const std::string name(StreamName(kind));
  const int64_t batch = inputs.latent.dim(0);
  const int64_t width = model.config.width;
  const auto observe = [&](const char* stage, const Tensor& rows, absl::Span<const int32_t> index) {
    return ObserveRows(*device_, observer, name + stage, rows, index, batch);
  };
  SharedModulation shared;
  LTX_ASSIGN_OR_RETURN(const AdaLayerNormSingle::Result adaln,
                       model.adaln.Forward(*device_, inputs.timesteps));
  run->embedded = {adaln.embedded, inputs.timestep_index, 0};
  shared.main = {{adaln.modulation, inputs.timestep_index, 0}, width};
  LTX_RETURN_IF_ERROR(observe("_modulation", adaln.modulation, inputs.timestep_of));
  LTX_RETURN_IF_ERROR(observe("_embedded_timestep", adaln.embedded, inputs.timestep_of));
  if (inputs.prompt_timesteps.defined()) {
    LTX_ASSIGN_OR_RETURN(const AdaLayerNormSingle::Result prompt,
                         model.prompt_adaln.Forward(*device_, inputs.prompt_timesteps));
    shared.prompt = {{prompt.modulation, Tensor(), 0}, width};
    LTX_RETURN_IF_ERROR(
        observe("_prompt_modulation", prompt.modulation, SampleIndex(prompt.modulation, batch)));
  }
  if (inputs.gate_timesteps.defined()) {
    LTX_ASSIGN_OR_RETURN(const AdaLayerNormSingle::Result cross,
                         model.cross_adaln.Forward(*device_, inputs.timesteps));
    shared.cross = {{cross.modulation, inputs.timestep_index, 0}, width};
    LTX_RETURN_IF_ERROR(observe("_cross_scale_shift", cross.modulation, inputs.timestep_of));
    LTX_ASSIGN_OR_RETURN(const AdaLayerNormSingle::Result gate,
                         model.cross_gate_adaln.Forward(*device_, inputs.gate_timesteps));
    shared.cross_gate = {{gate.modulation, Tensor(), 0}, width};
    LTX_RETURN_IF_ERROR(
        observe("_cross_gate", gate.modulation, SampleIndex(gate.modulation, batch)));
  }
  LTX_ASSIGN_OR_RETURN(run->modulations, model.tables.AddTo(*device_, shared));
  return absl::OkStatus();
}

absl::StatusOr<Transformer::StreamRun> Transformer::Begin(StreamKind kind,
                                                          const StreamInputs& inputs,
                                                          const StageObserver& observer) const {
  const StreamModel& model = ModelOf(kind);
  const std::string name(StreamName(kind));
  StreamRun run;
  LTX_ASSIGN_OR_RETURN(run.state.x, ProjectInput(kind, inputs));
  if (observer) observer(name + "_x", run.state.x);
  LTX_RETURN_IF_ERROR(BeginModulation(kind, inputs, &run, observer));
  run.block.context = inputs.context;
  if (model.caption_1.defined()) {
    LinearOptions gelu;
    gelu.activation = Activation::kGeluTanh;
    LTX_ASSIGN_OR_RETURN(const Tensor hidden,
                         device_->Linear(inputs.context, model.caption_1, gelu));
    LTX_ASSIGN_OR_RETURN(run.block.context, device_->Linear(hidden, model.caption_2));
  }
  if (observer) observer(name + "_context", run.block.context);
  run.block.context_rows = inputs.context_rows;
  run.block.context_bias = inputs.context_bias;
  run.block.self_bias = inputs.prepared->self_bias;
  run.block.rope = inputs.prepared->rope;
  run.block.cross_rope = inputs.prepared->cross_rope;
  run.block.enabled = inputs.enabled;
  return run;
}

absl::StatusOr<Tensor> Transformer::Finish(StreamKind kind, const StreamRun& run) const {
  const StreamModel& model = ModelOf(kind);
  RowVectors shift = run.embedded;
  RowVectors scale = run.embedded;
  LTX_ASSIGN_OR_RETURN(shift.rows,
                       device_->ScaleShiftChannels(run.embedded.rows, Tensor(), model.head_shift));
  LTX_ASSIGN_OR_RETURN(scale.rows,
                       device_->ScaleShiftChannels(run.embedded.rows, Tensor(), model.head_scale));
  LTX_ASSIGN_OR_RETURN(const Tensor normed,
                       device_->LayerNormModulate(run.state.x, model.config.epsilon, scale, shift));
  return device_->Linear(normed, model.proj_out);
}

absl::Status Transformer::RunBlocks(StreamRun* video, StreamRun* audio,
                                    const BatchPerturbations& perturbations,
                                    const StageObserver& observer) const {
  struct Side {
    StreamRun* run;
    PerturbationKind skip_self;
    PerturbationKind skip_cross;
    BlockInput input;
    /// Of the block to come.
    BlockModulation modulation;
  };
  Side sides[] = {{video, PerturbationKind::kSkipVideoSelfAttention,
                   PerturbationKind::kSkipAudioToVideoAttention, BlockInput(), BlockModulation()},
                  {audio, PerturbationKind::kSkipAudioSelfAttention,
                   PerturbationKind::kSkipVideoToAudioAttention, BlockInput(), BlockModulation()}};
  for (Side& side : sides) {
    if (side.run == nullptr) continue;
    side.input.stream = &side.run->block;
    LTX_ASSIGN_OR_RETURN(side.modulation, side.run->modulations.Of(*device_, 0));
  }
  for (int64_t i = 0; i < num_blocks(); ++i) {
    for (Side& side : sides) {
      if (side.run == nullptr) continue;
      side.input.modulation = std::exchange(side.modulation, BlockModulation());
      side.input.keep = {KeepFlagsOf(perturbations, side.skip_self, i),
                         KeepFlagsOf(perturbations, side.skip_cross, i)};
      if (i + 1 < num_blocks()) {
        LTX_ASSIGN_OR_RETURN(side.modulation, side.run->modulations.Of(*device_, i + 1));
      }
      side.input.next_modulation = side.modulation.main;
    }
    LTX_RETURN_IF_ERROR(blocks_[i].Forward(*device_, video == nullptr ? nullptr : &sides[0].input,
                                           video == nullptr ? nullptr : &video->state,
                                           audio == nullptr ? nullptr : &sides[1].input,
                                           audio == nullptr ? nullptr : &audio->state));
    if (observer && video != nullptr) observer(absl::StrCat("block", i, "_video"), video->state.x);
    if (observer && audio != nullptr) observer(absl::StrCat("block", i, "_audio"), audio->state.x);
  }
  return absl::OkStatus();
}

absl::StatusOr<StreamPair> Transformer::Evaluate(const StreamInputs* video,
                                                 const StreamInputs* audio,
                                                 const BatchPerturbations& perturbations,
                                                 const StageObserver& observer) const {
  StreamRun video_run;
  StreamRun audio_run;
  const auto begin = [&](StreamKind kind, const StreamInputs* inputs,
                         StreamRun* run) -> absl::Status {
    if (inputs == nullptr) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(*run, Begin(kind, *inputs, observer));
    return absl::OkStatus();
  };
  StreamPair velocity;
  const auto finish = [&](StreamKind kind, const StreamInputs* inputs, const StreamRun& run,
                          Tensor* result) -> absl::Status {
    if (inputs == nullptr) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(*result, Finish(kind, run));
    return absl::OkStatus();
  };
  LTX_RETURN_IF_ERROR(Beside(
      *device_, observer, [&] { return begin(StreamKind::kVideo, video, &video_run); },
      [&] { return begin(StreamKind::kAudio, audio, &audio_run); }));
  LTX_RETURN_IF_ERROR(RunBlocks(video == nullptr ? nullptr : &video_run,
                                audio == nullptr ? nullptr : &audio_run, perturbations, observer));
  LTX_RETURN_IF_ERROR(Beside(
      *device_, observer,
      [&] { return finish(StreamKind::kVideo, video, video_run, &velocity.video); },
      [&] { return finish(StreamKind::kAudio, audio, audio_run, &velocity.audio); }));
  return velocity;
}

absl::StatusOr<bool> Transformer::RefreshRecordings() const {
  return recorded_.Refresh(*device_, EvaluateUnobserved());
}

absl::StatusOr<StreamPair> Transformer::Forward(const Modality* video, const Modality* audio,
                                                const BatchPerturbations& perturbations,
                                                const StageObserver& observer) const {
  LTX_RETURN_IF_ERROR(CheckPair(video, audio, perturbations));
  StreamPair empty;
  // A stream without tokens takes part in nothing.
  const auto set_aside_if_empty = [&](StreamKind kind, const Modality*& modality,
                                      Tensor* result) -> absl::Status {
    if (modality == nullptr || modality->latent.dim(1) > 0) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(
        *result, device_->Allocate({modality->latent.dim(0), 0, ModelOf(kind).out_channels}, dtype_,
                                   MemoryOwner::kActivations));
    modality = nullptr;
    return absl::OkStatus();
  };
  LTX_RETURN_IF_ERROR(set_aside_if_empty(StreamKind::kVideo, video, &empty.video));
  LTX_RETURN_IF_ERROR(set_aside_if_empty(StreamKind::kAudio, audio, &empty.audio));
  if (video == nullptr && audio == nullptr) return empty;

  StreamInputs video_inputs;
  StreamInputs audio_inputs;
  if (video != nullptr) {
    LTX_ASSIGN_OR_RETURN(video_inputs, StageInputs(StreamKind::kVideo, *video, audio));
  }
  if (audio != nullptr) {
    LTX_ASSIGN_OR_RETURN(audio_inputs, StageInputs(StreamKind::kAudio, *audio, video));
  }
  const StreamInputs* const video_in = video == nullptr ? nullptr : &video_inputs;
  const StreamInputs* const audio_in = audio == nullptr ? nullptr : &audio_inputs;
  StreamPair velocity;
  if (recording_ && device_->can_record() && !observer) {
    LTX_ASSIGN_OR_RETURN(
        velocity, recorded_.Run(*device_, video_in, audio_in, perturbations, EvaluateUnobserved()));
  } else {
    LTX_ASSIGN_OR_RETURN(velocity, Evaluate(video_in, audio_in, perturbations, observer));
  }
  if (video == nullptr) velocity.video = std::move(empty.video);
  if (audio == nullptr) velocity.audio = std::move(empty.audio);
  return velocity;
}

}  // namespace ltx::dit
