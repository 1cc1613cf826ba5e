#include "tests/golden/prompt_run.h"

#include <cmath>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/pipeline/model_parts.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/text/duration_head.h"
#include "kernels/status_macros.h"
#include "tests/golden/pipeline_case.h"

namespace ltx::golden {
namespace {

using nlohmann::json;
using pipeline::Model;

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
  // Counts of the form 8 k + 1.
  constexpr int64_t kFrameStep = 8;
  outputs->SetGridInts("predicted_frames", {1}, {frames}, kFrameStep);
  return absl::OkStatus();
}

absl::Status RunPrompts(const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const std::string pack, StringParam(golden, "checkpoint_pack"));
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                       LoadModel(golden.Resolve(pack), checkpoint::ModelKind::kDistilled, &device,
                                 ComputeDType(context, DType::kF32, outputs)));
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

}  // namespace

void RegisterPromptRun(ComponentRegistry* registry) {
  registry->emplace("pipeline.prompts", RunPrompts);
}

}  // namespace ltx::golden
