#include "tests/golden/pipeline_runs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/model_set.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/model_parts.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "engine/sampling/noise_source.h"
#include "engine/text/duration_head.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

using nlohmann::json;
using pipeline::GenerationJob;
using pipeline::GenerationRequest;
using pipeline::GenerationResult;
using pipeline::JobOptions;
using pipeline::Model;
using sampling::Modality;
using sampling::ModalityName;
using sampling::NoiseDraw;

absl::Status Malformed(const char* name) {
  return absl::InvalidArgumentError(absl::StrCat("params.", name, " is missing or malformed"));
}

absl::StatusOr<std::string> StringParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_string()) return Malformed(name);
  return it->get<std::string>();
}

absl::StatusOr<double> NumberParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_number()) return Malformed(name);
  return it->get<double>();
}

absl::StatusOr<int64_t> IntParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_number_integer()) return Malformed(name);
  return it->get<int64_t>();
}

absl::StatusOr<std::vector<int64_t>> IntListParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_array()) return Malformed(name);
  std::vector<int64_t> list;
  for (const json& value : *it) {
    if (!value.is_number_integer()) return Malformed(name);
    list.push_back(value.get<int64_t>());
  }
  return list;
}

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& folder, Device* device,
                                                 DType compute_dtype) {
  LTX_ASSIGN_OR_RETURN(const checkpoint::ModelSet set, checkpoint::ModelSet::Open(folder));
  pipeline::ModelOptions options;
  options.compute_dtype = compute_dtype;
  // The reduced packs do not say; every case of this area runs a distilled recipe.
  options.kind = checkpoint::ModelKind::kDistilled;
  return Model::Load(device, set, options);
}

absl::StatusOr<GenerationRequest> RequestOf(const GoldenCase& golden) {
  GenerationRequest request;
  LTX_ASSIGN_OR_RETURN(request.prompt, StringParam(golden, "prompt"));
  LTX_ASSIGN_OR_RETURN(request.height, IntParam(golden, "height"));
  LTX_ASSIGN_OR_RETURN(request.width, IntParam(golden, "width"));
  LTX_ASSIGN_OR_RETURN(request.num_frames, IntParam(golden, "num_frames"));
  LTX_ASSIGN_OR_RETURN(const double rate, NumberParam(golden, "frame_rate"));
  LTX_ASSIGN_OR_RETURN(request.frame_rate, pipeline::FrameRate::FromDouble(rate));
  LTX_ASSIGN_OR_RETURN(const int64_t seed, IntParam(golden, "seed"));
  request.seed = static_cast<uint64_t>(seed);
  request.noise_generator = pipeline::NoiseGenerator::kTorchCpu;
  return request;
}

/// Answers each draw with an input of the case: `name` gives the input's name and which row of it
/// (all of it if it has a single one).
class RecordedNoise final : public sampling::NoiseSource {
 public:
  using Name = std::function<std::pair<std::string, int64_t>(const NoiseDraw&)>;
  RecordedNoise(const GoldenCase* golden, Name name) : golden_(golden), name_(std::move(name)) {}

  absl::StatusOr<Tensor> Draw(Device& device, const NoiseDraw& draw, const Shape& shape,
                              DType dtype) override {
    const auto [name, row] = name_(draw);
    LTX_ASSIGN_OR_RETURN(const Tensor all, golden_->Input(device, name, dtype));
    if (row >= all.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat("in/", name, " has no draw ", row));
    }
    LTX_ASSIGN_OR_RETURN(const Tensor drawn, all.Rows(row, row + 1));
    if (drawn.shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat("in/", name, " is ", drawn.shape().ToString(),
                                                     ", the run draws ", shape.ToString()));
    }
    return drawn;
  }

 private:
  const GoldenCase* const golden_;
  const Name name_;
};

absl::StatusOr<GenerationResult> RunJob(const Model& model, const GenerationRequest& request,
                                        const JobOptions& options) {
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<GenerationJob> job,
                       GenerationJob::Create(&model, request, options));
  while (!job->done()) LTX_RETURN_IF_ERROR(job->Advance().status());
  return job->TakeResult();
}

/// Mean and standard deviation (n - 1) of every `stride`-th value of [begin, end).
struct Moments {
  float mean = 0, std = 0;
};
Moments MomentsOf(const float* begin, const float* end, int64_t stride) {
  double sum = 0, squares = 0, count = 0;
  for (const float* x = begin; x < end; x += stride) sum += *x, count += 1;
  const double mean = sum / count;
  for (const float* x = begin; x < end; x += stride) squares += (*x - mean) * (*x - mean);
  return {static_cast<float>(mean), static_cast<float>(std::sqrt(squares / (count - 1)))};
}

// --- The reduced pack -----------------------------------------------------------------------

/// Stores the stages of a run under the names of the reduced cases.
class PackObserver {
 public:
  PackObserver(const GoldenCase* golden, Device* device, const GenerationRequest& request,
               int64_t audio_channels, GoldenOutputs* outputs)
      : golden_(golden),
        device_(device),
        request_(request),
        audio_channels_(audio_channels),
        outputs_(outputs) {}

  const absl::Status& status() const { return status_; }
  void operator()(absl::string_view name, const Tensor& x) { status_.Update(Store(name, x)); }

 private:
  absl::Status Store(absl::string_view name, const Tensor& x) {
    std::string target = absl::StrCat("stage.", name);
    if (absl::EndsWith(name, ".initial")) target += "_latent";
    if (!golden_->HasOutput(target)) return absl::OkStatus();
    if (absl::EndsWith(name, ".denoise_mask")) {
      LTX_ASSIGN_OR_RETURN(const Tensor column, x.Reshape({x.dim(0), x.dim(1), 1}));
      return outputs_->Set(*device_, target, column);
    }
    if (absl::EndsWith(name, ".final") || absl::EndsWith(name, ".initial")) {
      LTX_ASSIGN_OR_RETURN(const Tensor latent, Unpatchify(name, x));
      return outputs_->Set(*device_, target, latent);
    }
    return outputs_->Set(*device_, target, x);
  }

  absl::StatusOr<Tensor> Unpatchify(absl::string_view name, const Tensor& tokens) const {
    if (absl::StrContains(name, ".audio.")) {
      return audio_vae::UnpatchifyAudio(*device_, tokens, audio_channels_);
    }
    const int64_t divisor = absl::StartsWith(name, "s1.") ? 2 : 1;
    const auto extents = sampling::LatentExtentsOf(request_.num_frames, request_.height / divisor,
                                                   request_.width / divisor);
    return sampling::UnpatchifyVideo(*device_, tokens, extents.frames, extents.height,
                                     extents.width);
  }

  const GoldenCase* const golden_;
  Device* const device_;
  const GenerationRequest request_;
  const int64_t audio_channels_;
  GoldenOutputs* const outputs_;
  absl::Status status_;
};

absl::Status SetPackMedia(const GoldenCase& golden, Device& device, const GenerationResult& result,
                          GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> frames, ToFloats(device, result.frames));
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> kept, IntListParam(golden, "kept_frames"));
  const Shape& shape = result.frames.shape();
  const int64_t frame_values = shape.dim(1) * shape.dim(2) * 3;
  std::vector<float> pixels, means, stds;
  for (const int64_t frame : kept) {
    if (frame < 0 || frame >= shape.dim(0)) return Malformed("kept_frames");
    pixels.insert(pixels.end(), frames.begin() + frame * frame_values,
                  frames.begin() + (frame + 1) * frame_values);
  }
  for (int64_t frame = 0; frame < shape.dim(0); ++frame) {
    for (int64_t channel = 0; channel < 3; ++channel) {
      const float* const begin = frames.data() + frame * frame_values;
      const Moments moments = MomentsOf(begin + channel, begin + frame_values, 3);
      means.push_back(moments.mean);
      stds.push_back(moments.std);
    }
  }
  outputs->SetFloats("pixels", {static_cast<int64_t>(kept.size()), shape.dim(1), shape.dim(2), 3},
                     pixels);
  outputs->SetFloats("pixel_mean", {shape.dim(0), 3}, means);
  outputs->SetFloats("pixel_std", {shape.dim(0), 3}, stds);

  LTX_ASSIGN_OR_RETURN(const std::vector<float> samples, ToFloats(device, result.waveform));
  const int64_t length = result.waveform.dim(1);
  // The cases keep the first samples of a waveform.
  constexpr int64_t kKeptSamples = 6000;
  const int64_t kept_samples = std::min(kKeptSamples, length);
  std::vector<float> waveform, waveform_std;
  for (int64_t channel = 0; channel < result.waveform.dim(0); ++channel) {
    const float* const begin = samples.data() + channel * length;
    waveform.insert(waveform.end(), begin, begin + kept_samples);
    waveform_std.push_back(MomentsOf(begin, begin + length, 1).std);
  }
  outputs->SetFloats("waveform", {result.waveform.dim(0), kept_samples}, waveform);
  outputs->SetFloats("waveform_std", {result.waveform.dim(0)}, waveform_std);
  outputs->SetInts("waveform_length", {2}, {length, result.sample_rate});
  return absl::OkStatus();
}

/// The positive contexts of the case's contexts_file, which were rounded to bfloat16.
absl::StatusOr<text::PromptContexts> RecordedContexts(const GoldenCase& golden, Device* device) {
  LTX_ASSIGN_OR_RETURN(const std::string name, StringParam(golden, "contexts_file"));
  LTX_ASSIGN_OR_RETURN(const auto file, checkpoint::SafetensorsFile::Open(golden.Resolve(name)));
  checkpoint::WeightSet set;
  LTX_RETURN_IF_ERROR(set.Add(file, "out/"));
  checkpoint::WeightLoader loader(device, &set, DType::kF32, MemoryOwner::kActivations);
  text::PromptContexts contexts;
  for (const auto& [tensor, target] :
       {std::pair<const char*, Tensor*>{"positive.video", &contexts.video},
        {"positive.audio", &contexts.audio}}) {
    const Shape* const shape = loader.ShapeOf(tensor);
    if (shape == nullptr) return absl::NotFoundError(absl::StrCat(name, " lacks out/", tensor));
    LTX_ASSIGN_OR_RETURN(*target, loader.Get(tensor, *shape));
  }
  return contexts;
}

absl::Status RunPackDistilled(const GoldenCase& golden, const GoldenContext& context,
                              GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const std::string pack, StringParam(golden, "checkpoint_pack"));
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<Model> model,
      LoadModel(golden.Resolve(pack), &device, ComputeDType(context, DType::kF32, outputs)));
  LTX_ASSIGN_OR_RETURN(const GenerationRequest request, RequestOf(golden));
  LTX_ASSIGN_OR_RETURN(const int64_t audio_channels, IntParam(golden, "audio_latent_channels"));
  LTX_ASSIGN_OR_RETURN(const std::string sampler, StringParam(golden, "stage_1_sampler"));

  PackObserver observer(&golden, &device, request, audio_channels, outputs);
  JobOptions options;
  LTX_ASSIGN_OR_RETURN(options.contexts, RecordedContexts(golden, &device));
  options.ancestral = absl::StartsWith(sampler, "euler_ancestral");
  options.observer = [&observer](absl::string_view name, const Tensor& x) { observer(name, x); };
  options.noise = std::make_shared<RecordedNoise>(&golden, [](const NoiseDraw& draw) {
    const std::string stage = absl::StrCat("noise.s", draw.stage, ".");
    const std::string name = draw.use == NoiseDraw::Use::kLoop
                                 ? absl::StrCat(stage, "loop.", draw.index)
                                 : absl::StrCat(stage, ModalityName(draw.modality));
    return std::pair<std::string, int64_t>{name, 0};
  });
  LTX_ASSIGN_OR_RETURN(const GenerationResult result, RunJob(*model, request, options));
  LTX_RETURN_IF_ERROR(observer.status());
  for (size_t i = 0; i < result.parameters.stages.size(); ++i) {
    const auto& stage = result.parameters.stages[i];
    if (i == 0 && stage.sampler != sampler) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage 1 ran ", stage.sampler, ", the case ran ", sampler));
    }
    outputs->SetFloats(absl::StrCat("stage.s", i + 1, ".sigmas"),
                       {static_cast<int64_t>(stage.sigmas.size())}, stage.sigmas);
  }
  return SetPackMedia(golden, device, result, outputs);
}

/// The duration head of the pack on the positive prompt: seconds, and frames between 1 and 20
/// seconds, the reference's range.
absl::Status SetDuration(const GoldenCase& golden, Device& device, const std::string& pack,
                         const text::PromptContexts& contexts, GoldenOutputs* outputs) {
  const std::string path = absl::StrCat(pack, "/duration_head.safetensors");
  LTX_ASSIGN_OR_RETURN(const auto file, checkpoint::SafetensorsFile::Open(path));
  const auto text = file->metadata().find("config");
  if (text == file->metadata().end()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no config"));
  }
  LTX_ASSIGN_OR_RETURN(const json config, checkpoint::ParseJsonObject(text->second, path));
  LTX_ASSIGN_OR_RETURN(const checkpoint::DurationHeadConfig head_config,
                       checkpoint::ParseDurationHeadConfig(config));
  checkpoint::WeightSet set;
  LTX_RETURN_IF_ERROR(set.Add(file));
  const checkpoint::WeightLoader loader(&device, &set, DType::kF32, MemoryOwner::kWeightsText);
  LTX_ASSIGN_OR_RETURN(const text::DurationHead head,
                       text::DurationHead::Load(head_config, loader.Sub("duration_head.")));
  LTX_ASSIGN_OR_RETURN(const float seconds, head.PredictSeconds(contexts.video, contexts.audio));
  outputs->SetFloats("predicted_seconds", {1}, {seconds});
  LTX_ASSIGN_OR_RETURN(const double rate, NumberParam(golden, "frame_rate"));
  LTX_ASSIGN_OR_RETURN(
      const int64_t frames,
      sampling::FramesForDuration(seconds, rate, std::lrint(1.0 * rate), std::lrint(20.0 * rate)));
  outputs->SetInts("predicted_frames", {1}, {frames});
  return absl::OkStatus();
}

absl::Status RunPrompts(const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const std::string pack, StringParam(golden, "checkpoint_pack"));
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<Model> model,
      LoadModel(golden.Resolve(pack), &device, ComputeDType(context, DType::kF32, outputs)));
  for (const char* prompt : {"positive", "negative"}) {
    LTX_ASSIGN_OR_RETURN(const std::string text, StringParam(golden, prompt));
    LTX_ASSIGN_OR_RETURN(const text::PromptContexts contexts,
                         model->parts().prompt_encoder->Encode(text));
    LTX_ASSIGN_OR_RETURN(const Tensor video, device.Cast(contexts.video, DType::kBF16));
    LTX_ASSIGN_OR_RETURN(const Tensor audio, device.Cast(contexts.audio, DType::kBF16));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat(prompt, ".video"), video));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat(prompt, ".audio"), audio));
    if (absl::string_view(prompt) == "positive") {
      // The head read the contexts as the diffusion part gets them: rounded.
      text::PromptContexts rounded;
      LTX_ASSIGN_OR_RETURN(rounded.video, device.Cast(video, DType::kF32));
      LTX_ASSIGN_OR_RETURN(rounded.audio, device.Cast(audio, DType::kF32));
      LTX_RETURN_IF_ERROR(SetDuration(golden, device, golden.Resolve(pack), rounded, outputs));
    }
  }
  return absl::OkStatus();
}

// --- The trained miniature ------------------------------------------------------------------

/// Collects what the miniature's case holds: latents of all calls stacked, last predictions.
class TinyObserver {
 public:
  TinyObserver(Device* device, const GenerationRequest& request, GoldenOutputs* outputs)
      : device_(device), request_(request), outputs_(outputs) {}

  void operator()(absl::string_view name, const Tensor& x) { status_.Update(Store(name, x)); }

  /// Stores what was collected over the calls.
  absl::Status Finish() {
    for (const auto& [name, stack] : stacks_) {
      outputs_->SetFloats(name, {stack.calls, stack.tokens, stack.channels}, stack.values);
    }
    for (const auto& [name, last] : last_) {
      LTX_RETURN_IF_ERROR(outputs_->Set(*device_, name, last));
    }
    return status_;
  }

 private:
  struct Stack {
    int64_t calls = 0, tokens = 0, channels = 0;
    std::vector<float> values;
  };

  absl::Status Store(absl::string_view name, const Tensor& x) {
    for (const Modality m : sampling::kModalities) {
      const absl::string_view modality = ModalityName(m);
      if (name == absl::StrCat("context.", modality)) {
        constexpr int64_t kKeptRows = 32;
        LTX_ASSIGN_OR_RETURN(const Tensor rows, device_->Slice(x, 1, 0, kKeptRows));
        return outputs_->Set(*device_, absl::StrCat("stage.", modality, "_context.first32"), rows);
      }
      for (const int stage : {1, 2}) {
        const std::string prefix = absl::StrCat("s", stage, ".");
        const std::string target = absl::StrCat("stage", stage, ".", modality);
        if (!absl::StartsWith(name, prefix)) continue;
        if (absl::EndsWith(name, absl::StrCat(".", modality, ".in"))) {
          return Push(absl::StrCat(target, "_xt"), x);
        }
        if (absl::EndsWith(name, absl::StrCat(".", modality, ".x0"))) {
          last_[absl::StrCat(target, "_x0.last")] = x;
        }
      }
    }
    if (name == "upscaled") {
      LTX_ASSIGN_OR_RETURN(const Tensor latent, device_->Permute(x, {0, 4, 1, 2, 3}));
      return outputs_->Set(*device_, "stage.upscaled_latent", latent);
    }
    if (name == "s2.video.final") {
      const auto extents =
          sampling::LatentExtentsOf(request_.num_frames, request_.height, request_.width);
      LTX_ASSIGN_OR_RETURN(
          const Tensor latent,
          sampling::UnpatchifyVideo(*device_, x, extents.frames, extents.height, extents.width));
      return outputs_->Set(*device_, "video_latent", latent);
    }
    if (name == "s2.audio.final") {
      // Eight channels of sixteen bins, as in every released model.
      LTX_ASSIGN_OR_RETURN(const Tensor latent, audio_vae::UnpatchifyAudio(*device_, x, 8));
      return outputs_->Set(*device_, "audio_latent", latent);
    }
    return absl::OkStatus();
  }

  absl::Status Push(const std::string& name, const Tensor& x) {
    LTX_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(*device_, x));
    Stack& stack = stacks_[name];
    stack.calls += x.dim(0);
    stack.tokens = x.dim(1);
    stack.channels = x.dim(2);
    stack.values.insert(stack.values.end(), values.begin(), values.end());
    return absl::OkStatus();
  }

  Device* const device_;
  const GenerationRequest request_;
  GoldenOutputs* const outputs_;
  std::map<std::string, Stack> stacks_;
  std::map<std::string, Tensor> last_;
  absl::Status status_;
};

absl::Status SetTinyMedia(Device& device, const GenerationResult& result, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> frames, ToFloats(device, result.frames));
  const Shape& shape = result.frames.shape();
  const int64_t frame_values = shape.dim(1) * shape.dim(2) * 3;
  std::vector<int64_t> even;
  std::vector<float> means;
  for (int64_t frame = 0; frame < shape.dim(0); ++frame) {
    const float* const begin = frames.data() + frame * frame_values;
    for (int64_t channel = 0; channel < 3; ++channel) {
      means.push_back(MomentsOf(begin + channel, begin + frame_values, 3).mean);
    }
    for (int64_t i = 0; frame % 2 == 0 && i < frame_values; ++i) {
      even.push_back(static_cast<int64_t>(std::nearbyint(255.0f * begin[i])));
    }
  }
  outputs->SetInts("frames.even", {(shape.dim(0) + 1) / 2, shape.dim(1), shape.dim(2), 3}, even);
  outputs->SetFloats("frames.mean", {shape.dim(0), 3}, means);
  return outputs->Set(device, "waveform", result.waveform);
}

absl::Status RunTiny(const GoldenCase& golden, const GoldenContext& context,
                     GoldenOutputs* outputs) {
  return RunLtxTinyDistilled(golden, context, RunNoise::kRecorded, outputs);
}

}  // namespace

absl::Status RunLtxTinyDistilled(const GoldenCase& golden, const GoldenContext& context,
                                 RunNoise noise, GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const std::string models, StringParam(golden, "models"));
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                       LoadModel(absl::StrCat(context.models_dir, "/", models), &device,
                                 ComputeDType(context, DType::kF32, outputs)));
  LTX_ASSIGN_OR_RETURN(const GenerationRequest request, RequestOf(golden));
  TinyObserver observer(&device, request, outputs);
  JobOptions options;
  options.observer = [&observer](absl::string_view name, const Tensor& x) { observer(name, x); };
  if (noise == RunNoise::kRecorded) {
    options.noise = std::make_shared<RecordedNoise>(&golden, [](const NoiseDraw& draw) {
      const absl::string_view modality = ModalityName(draw.modality);
      // The loop's draws alternate between the modalities.
      if (draw.use == NoiseDraw::Use::kLoop) {
        return std::pair<std::string, int64_t>{absl::StrCat("noise.loop.", modality),
                                               draw.index / 2};
      }
      return std::pair<std::string, int64_t>{absl::StrCat("noise.stage", draw.stage, ".", modality),
                                             0};
    });
  }
  LTX_ASSIGN_OR_RETURN(const GenerationResult result, RunJob(*model, request, options));
  LTX_RETURN_IF_ERROR(observer.Finish());
  return SetTinyMedia(device, result, outputs);
}

void RegisterPipelineRuns(ComponentRegistry* registry) {
  registry->emplace("pipeline.prompts", RunPrompts);
  registry->emplace("pipeline.distilled", RunPackDistilled);
  registry->emplace("pipeline.distilled_euler", RunPackDistilled);
  registry->emplace("pipeline.ltx_tiny_distilled", RunTiny);
}

}  // namespace ltx::golden
