#include "tests/golden/tiny_run.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/golden/pipeline_case.h"

namespace ltx::golden {
namespace {

using pipeline::GenerationRequest;
using pipeline::JobOptions;
using pipeline::Model;
using sampling::Modality;
using sampling::ModalityName;
using sampling::NoiseDraw;

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

absl::Status SetTinyMedia(Device& device, const FinishedRun& run, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::vector<float> frames, ToFloats(device, run.frames));
  const Shape& shape = run.frames.shape();
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
  return outputs->Set(device, "waveform", run.result.waveform);
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
  LTX_ASSIGN_OR_RETURN(
      const std::unique_ptr<Model> model,
      LoadModel(absl::StrCat(context.models_dir, "/", models), checkpoint::ModelKind::kDistilled,
                &device, ComputeDType(context, DType::kF32, outputs)));
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
  LTX_ASSIGN_OR_RETURN(const FinishedRun run, RunJob(*model, request, options));
  LTX_RETURN_IF_ERROR(observer.Finish());
  return SetTinyMedia(device, run, outputs);
}

void RegisterTinyRun(ComponentRegistry* registry) {
  registry->emplace("pipeline.ltx_tiny_distilled", RunTiny);
}

}  // namespace ltx::golden
