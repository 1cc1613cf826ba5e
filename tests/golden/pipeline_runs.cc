#include "tests/golden/pipeline_runs.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/pipeline/model_parts.h"
#include "engine/pipeline/recipe.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/golden/pipeline_case.h"

namespace ltx::golden {
namespace {

using nlohmann::json;
using pipeline::GenerationRequest;
using pipeline::GenerationResult;
using pipeline::JobOptions;
using pipeline::Model;
using pipeline::Recipe;
using sampling::Modality;
using sampling::ModalityName;
using sampling::NoiseDraw;

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
    const int stage = absl::StartsWith(name, "s1.") ? 0 : 1;
    const int64_t divisor = pipeline::TraitsOf(request_.recipe).stages[stage].size_divisor;
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

absl::Status SetPicture(const GoldenCase& golden, Device& device, const Tensor& picture,
                        GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> frames, ToFloats(device, picture));
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> kept, IntListParam(golden, "kept_frames"));
  const Shape& shape = picture.shape();
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
  return absl::OkStatus();
}

absl::Status SetSound(Device& device, const GenerationResult& result, GoldenOutputs* outputs) {
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

/// The contexts of one prompt ("positive", "negative") of the case's contexts_file, which were
/// rounded to bfloat16.
absl::StatusOr<text::PromptContexts> RecordedContexts(const GoldenCase& golden,
                                                      absl::string_view prompt, Device* device) {
  LTX_ASSIGN_OR_RETURN(const std::string name, StringParam(golden, "contexts_file"));
  LTX_ASSIGN_OR_RETURN(const auto file, checkpoint::SafetensorsFile::Open(golden.Resolve(name)));
  checkpoint::WeightSet set;
  LTX_RETURN_IF_ERROR(set.Add(file, "out/"));
  checkpoint::WeightLoader loader(device, &set, DType::kF32, MemoryOwner::kActivations);
  text::PromptContexts contexts;
  for (const auto& [modality, target] :
       {std::pair<const char*, Tensor*>{"video", &contexts.video}, {"audio", &contexts.audio}}) {
    const std::string tensor = absl::StrCat(prompt, ".", modality);
    const Shape* const shape = loader.ShapeOf(tensor);
    if (shape == nullptr) return absl::NotFoundError(absl::StrCat(name, " lacks out/", tensor));
    LTX_ASSIGN_OR_RETURN(*target, loader.Get(tensor, *shape));
  }
  return contexts;
}

/// The guider of one modality; what the case leaves out is the reference's neutral value.
absl::Status ReadGuider(const GoldenCase& golden, Modality modality, int64_t num_blocks,
                        GenerationRequest* request) {
  const std::string name = absl::StrCat(ModalityName(modality), "_guider");
  const auto it = golden.params().find(name);
  if (it == golden.params().end()) return absl::OkStatus();
  if (!it->is_object()) return Malformed(name);
  pipeline::GuidanceFields& fields = request->guidance[modality];
  fields.cfg_scale = it->value("cfg_scale", 1.0);
  fields.stg_scale = it->value("stg_scale", 0.0);
  fields.rescale_scale = it->value("rescale_scale", 0.0);
  // Sound alone has nothing to be isolated from, and the field is refused.
  if (pipeline::TraitsOf(request->recipe).video) {
    fields.modality_scale = it->value("modality_scale", 1.0);
  }
  fields.skip_step = it->value("skip_step", int64_t{0});
  if (*fields.stg_scale == 0.0) return absl::OkStatus();
  fields.stg_blocks.emplace();
  const auto blocks = it->find("stg_blocks");
  if (blocks == it->end() || blocks->is_array()) {
    for (const json& block : blocks == it->end() ? json::array() : *blocks) {
      if (!block.is_number_integer()) return Malformed(name);
      fields.stg_blocks->push_back(block.get<int64_t>());
    }
    return absl::OkStatus();
  }
  // Null stands for all.
  for (int64_t block = 0; block < num_blocks; ++block) fields.stg_blocks->push_back(block);
  return absl::OkStatus();
}

absl::StatusOr<GenerationRequest> PackRequest(const GoldenCase& golden, Recipe recipe,
                                              int64_t num_blocks) {
  LTX_ASSIGN_OR_RETURN(GenerationRequest request, RequestOf(golden));
  request.recipe = recipe;
  const pipeline::RecipeTraits& traits = pipeline::TraitsOf(recipe);
  if (!traits.video) request.height = request.width = 0;
  if (!traits.guided()) return request;
  LTX_ASSIGN_OR_RETURN(request.num_inference_steps, IntParam(golden, "num_inference_steps"));
  bool uses_negative = false;
  for (const Modality m : sampling::kModalities) {
    LTX_RETURN_IF_ERROR(ReadGuider(golden, m, num_blocks, &request));
    uses_negative = uses_negative || request.guidance[m].cfg_scale.value_or(1.0) != 1.0;
  }
  // Where no pass reads it, giving one is refused.
  if (uses_negative) {
    LTX_ASSIGN_OR_RETURN(request.negative_prompt, StringParam(golden, "negative_prompt"));
  }
  if (recipe == Recipe::kTwoStage) {
    LTX_ASSIGN_OR_RETURN(request.distilled_lora_strength_stage_2,
                         NumberParam(golden, "distilled_lora_strength"));
  }
  if (recipe == Recipe::kTwoStageHq) {
    LTX_ASSIGN_OR_RETURN(request.distilled_lora_strength_stage_1,
                         NumberParam(golden, "distilled_lora_strength_stage_1"));
    LTX_ASSIGN_OR_RETURN(request.distilled_lora_strength_stage_2,
                         NumberParam(golden, "distilled_lora_strength_stage_2"));
  }
  return request;
}

/// First-frame images: their recorded latents stand in for an encoder. Anything else that an image
/// may ask for is not a latent frame that is replaced.
absl::Status GiveImages(const GoldenCase& golden, Device* device, int num_stages,
                        JobOptions* options, GoldenOutputs* outputs) {
  const auto images = golden.params().find("images");
  if (images == golden.params().end()) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const auto file, checkpoint::SafetensorsFile::Open(golden.file().path()));
  checkpoint::WeightSet set;
  LTX_RETURN_IF_ERROR(set.Add(file, "out/"));
  checkpoint::WeightLoader loader(device, &set, DType::kF32, MemoryOwner::kActivations);
  options->replaced_frames.resize(num_stages);
  for (size_t i = 0; i < images->size(); ++i) {
    const json& image = (*images)[i];
    if (image.value("frame_idx", -1) != 0) {
      return absl::UnimplementedError(
          absl::StrCat("image ", i, " is a keyframe: only a first frame can be given"));
    }
    for (int stage = 1; stage <= num_stages; ++stage) {
      const std::string name = absl::StrCat("stage.s", stage, ".video.cond.", i);
      const Shape* const shape = loader.ShapeOf(name);
      if (shape == nullptr) return absl::NotFoundError(absl::StrCat("no out/", name));
      LTX_ASSIGN_OR_RETURN(const Tensor latent, loader.Get(name, *shape));
      pipeline::ReplacedFrames frames;
      LTX_ASSIGN_OR_RETURN(frames.tokens, sampling::PatchifyVideo(*device, latent));
      frames.strength = static_cast<float>(image.value("strength", 1.0));
      options->replaced_frames[stage - 1].push_back(std::move(frames));
      LTX_RETURN_IF_ERROR(outputs->Set(*device, name, latent));
      std::cout << golden.component() << ": the image's latent out/" << name
                << " is taken as given\n";
    }
  }
  return absl::OkStatus();
}

/// The reference answers for a stream that is absent with a scalar zero.
void SetAbsentStreams(const GoldenCase& golden, const GenerationResult& result,
                      GoldenOutputs* outputs) {
  if (result.parameters.has_video) return;
  for (const std::string& name : golden.OutputNames()) {
    if (absl::StrContains(name, ".video.")) outputs->SetFloats(name, Shape{}, {0.0f});
  }
}

/// Guidance multiplies the rounding of its passes. The reference's own bf16 runs are off from its
/// f32 ones by up to 0.052 in the four guided cases, and by up to 0.081 in further ones of other
/// sizes, guidance and models (docs/recipes.md); a quarter more than that is allowed.
constexpr double kGuidedBFloat16 = 0.1;

absl::Status RunPack(const GoldenCase& golden, const GoldenContext& context, Recipe recipe,
                     GoldenOutputs* outputs) {
  Device& device = *context.device;
  const pipeline::RecipeTraits& traits = pipeline::TraitsOf(recipe);
  LTX_ASSIGN_OR_RETURN(const std::string pack, StringParam(golden, "checkpoint_pack"));
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<Model> model,
      LoadModel(golden.Resolve(pack),
                traits.full_model ? checkpoint::ModelKind::kDev : checkpoint::ModelKind::kDistilled,
                &device, ComputeDType(context, DType::kF32, outputs)));
  if (traits.guided() && outputs->bf16_rel_l2().has_value()) {
    outputs->JudgeAsBFloat16(kGuidedBFloat16);
  }
  LTX_ASSIGN_OR_RETURN(const GenerationRequest request,
                       PackRequest(golden, recipe, model->parts().transformer->num_blocks()));
  LTX_ASSIGN_OR_RETURN(const int64_t audio_channels, IntParam(golden, "audio_latent_channels"));

  PackObserver observer(&golden, &device, request, audio_channels, outputs);
  JobOptions options;
  LTX_ASSIGN_OR_RETURN(options.contexts, RecordedContexts(golden, "positive", &device));
  LTX_ASSIGN_OR_RETURN(options.negative_contexts, RecordedContexts(golden, "negative", &device));
  LTX_RETURN_IF_ERROR(GiveImages(golden, &device, traits.num_stages, &options, outputs));
  std::string sampler;
  if (golden.params().count("stage_1_sampler") > 0) {
    LTX_ASSIGN_OR_RETURN(sampler, StringParam(golden, "stage_1_sampler"));
    options.ancestral = absl::StartsWith(sampler, "euler_ancestral");
  }
  options.observer = [&observer](absl::string_view name, const Tensor& x) { observer(name, x); };
  options.noise = std::make_shared<RecordedNoise>(&golden, [](const NoiseDraw& draw) {
    const std::string stage = absl::StrCat("noise.s", draw.stage, ".");
    const bool initial = draw.use == NoiseDraw::Use::kInitial;
    const std::string name = initial ? absl::StrCat(stage, ModalityName(draw.modality))
                                     : absl::StrCat(stage, "loop.", draw.index);
    return std::pair<std::string, int64_t>{name, 0};
  });
  LTX_ASSIGN_OR_RETURN(const FinishedRun run, RunJob(*model, request, options));
  const GenerationResult& result = run.result;
  LTX_RETURN_IF_ERROR(observer.status());
  for (size_t i = 0; i < result.parameters.stages.size(); ++i) {
    const auto& stage = result.parameters.stages[i];
    if (i == 0 && !sampler.empty() && stage.sampler != sampler) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage 1 ran ", stage.sampler, ", the case ran ", sampler));
    }
    outputs->SetFloats(absl::StrCat("stage.s", i + 1, ".sigmas"),
                       {static_cast<int64_t>(stage.sigmas.size())}, stage.sigmas);
  }
  SetAbsentStreams(golden, result, outputs);
  if (result.parameters.has_video) {
    LTX_RETURN_IF_ERROR(SetPicture(golden, device, run.frames, outputs));
  }
  return SetSound(device, result, outputs);
}

ComponentRunner PackRunner(Recipe recipe) {
  return [recipe](const GoldenCase& golden, const GoldenContext& context, GoldenOutputs* outputs) {
    return RunPack(golden, context, recipe, outputs);
  };
}

}  // namespace

void RegisterPipelineRuns(ComponentRegistry* registry) {
  registry->emplace("pipeline.distilled", PackRunner(Recipe::kDistilled));
  registry->emplace("pipeline.distilled_euler", PackRunner(Recipe::kDistilled));
  registry->emplace("pipeline.ti2vid_one_stage", PackRunner(Recipe::kOneStage));
  registry->emplace("pipeline.two_stage", PackRunner(Recipe::kTwoStage));
  registry->emplace("pipeline.two_stage_hq", PackRunner(Recipe::kTwoStageHq));
  registry->emplace("pipeline.text_to_audio", PackRunner(Recipe::kT2a));
}

}  // namespace ltx::golden
