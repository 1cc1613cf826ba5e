#include "engine/pipeline/guided_denoiser.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/dit/x0.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

using sampling::GuiderParams;
using sampling::kModalities;
using sampling::Modality;
using sampling::ModalityName;
using sampling::PerModality;

/// Whether a modality keeps its last prediction. The reference numbers half steps 0.
bool KeepsPrediction(const GuiderParams& guider, int step, bool half_step) {
  return guider.SkipsStep(half_step ? 0 : step);
}

template <typename T>
std::vector<T> Repeated(const std::vector<T>& values, size_t times) {
  std::vector<T> repeated;
  for (size_t i = 0; i < times; ++i) {
    repeated.insert(repeated.end(), values.begin(), values.end());
  }
  return repeated;
}

}  // namespace

absl::string_view GuidancePassName(GuidancePass pass) {
  switch (pass) {
    case GuidancePass::kCond:
      return "cond";
    case GuidancePass::kUncond:
      return "uncond";
    case GuidancePass::kPerturbed:
      return "ptb";
    case GuidancePass::kIsolated:
      return "mod";
  }
  return "unknown";
}

float ModelLevel(double sigma) {
  constexpr float kTimestepScale = 1000.0f;
  const auto product = static_cast<float>(sigma * kTimestepScale);
  auto best = static_cast<float>(sigma);
  for (const float level : {std::nextafter(best, 0.0f), std::nextafter(best, 2.0f)}) {
    if (std::fabs(level * kTimestepScale - product) < std::fabs(best * kTimestepScale - product)) {
      best = level;
    }
  }
  return best;
}

std::vector<GuidancePass> PassesAt(const GuidersAt& guiders, int step, bool half_step,
                                   bool force_uncond) {
  bool any = false, uncond = force_uncond, perturbed = false, isolated = false;
  for (const Modality m : kModalities) {
    const GuiderParams* const guider = guiders[m];
    if (guider == nullptr || KeepsPrediction(*guider, step, half_step)) continue;
    any = true;
    uncond |= guider->NeedsUnconditioned();
    perturbed |= guider->NeedsPerturbed();
    isolated |= guider->NeedsIsolated();
  }
  std::vector<GuidancePass> passes;
  if (!any) return passes;
  passes.push_back(GuidancePass::kCond);
  if (uncond) passes.push_back(GuidancePass::kUncond);
  if (perturbed) passes.push_back(GuidancePass::kPerturbed);
  if (isolated) passes.push_back(GuidancePass::kIsolated);
  return passes;
}

absl::StatusOr<std::unique_ptr<GuidedDenoiser>> GuidedDenoiser::Create(
    const dit::Transformer* transformer, PerModality<Stream> streams, Options options) {
  std::unique_ptr<GuidedDenoiser> denoiser(
      new GuidedDenoiser(transformer, std::move(streams), std::move(options)));
  if (!denoiser->present(Modality::kVideo) && !denoiser->present(Modality::kAudio)) {
    return absl::InvalidArgumentError("a denoiser needs at least one modality");
  }
  for (const Modality m : kModalities) {
    if (denoiser->present(m)) LTX_RETURN_IF_ERROR(denoiser->CheckStream(m));
  }
  return denoiser;
}

absl::Status GuidedDenoiser::CheckStream(Modality modality) const {
  const Stream& stream = streams_[modality];
  const std::string name = absl::StrCat(ModalityName(modality), "_guider");
  if (stream.prepared->batch != 1 ||
      static_cast<int64_t>(stream.mask.size()) != stream.prepared->tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        ModalityName(modality), " has batch ", stream.prepared->batch, " and a mask of ",
        stream.mask.size(), "; batch 1 and ", stream.prepared->tokens, " would be legal"));
  }
  bool needs_negative = options_.force_uncond;
  for (const auto& [bound, params] : stream.guider.by_bound()) {
    LTX_RETURN_IF_ERROR(sampling::CheckGuiderParams(params, name));
    needs_negative |= params.NeedsUnconditioned();
    if (options_.force_uncond && params.skip_step > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ".skip_step is ", params.skip_step,
                       "; 0 would be legal with a sampler that needs every negative prediction"));
    }
  }
  if (needs_negative && !stream.negative.defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".cfg_scale needs a negative context, and there is none"));
  }
  if (stream.negative.defined() && stream.negative.shape() != stream.positive.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        ModalityName(modality), " negative context has shape ", stream.negative.shape().ToString(),
        "; ", stream.positive.shape().ToString(), ", the positive's, would be legal"));
  }
  return absl::OkStatus();
}

bool GuidedDenoiser::Keeps(Modality modality) const {
  return KeepsPrediction(GuiderOf(modality), evaluation_.step, evaluation_.half_step);
}

absl::Status GuidedDenoiser::Begin(const sampling::Evaluation& evaluation) {
  if (under_way_) return absl::FailedPreconditionError("an evaluation is under way");
  evaluation_ = evaluation;
  GuidersAt guiders;
  for (const Modality m : kModalities) {
    if (!present(m)) continue;
    guiders[m] = &GuiderOf(m);
    if (Keeps(m) && !last_[m].defined()) {
      return absl::InternalError(absl::StrCat("evaluation ", evaluation.index, " keeps a ",
                                              ModalityName(m), " prediction that was never made"));
    }
  }
  const std::vector<GuidancePass> passes =
      PassesAt(guiders, evaluation.step, evaluation.half_step, options_.force_uncond);
  groups_.clear();
  if (options_.batch_passes && !passes.empty()) {
    groups_.push_back(passes);
  } else {
    for (const GuidancePass pass : passes) groups_.push_back({pass});
  }
  next_group_ = 0;
  predictions_ = {};
  under_way_ = true;
  return absl::OkStatus();
}

absl::StatusOr<dit::Modality> GuidedDenoiser::InputOf(
    Modality modality, const std::vector<GuidancePass>& passes) const {
  const Stream& stream = streams_[modality];
  Device& device = transformer_->device();
  const float sigma = stream.frozen ? 0.0f : ModelLevel(evaluation_.sigma);
  dit::Modality input;
  input.prepared = stream.prepared;
  input.sigma = {sigma};
  input.timesteps = Repeated(sampling::TokenTimesteps(stream.mask, sigma), passes.size());
  input.enabled = !Keeps(modality);
  const auto is_negative = [&](GuidancePass pass) {
    return pass == GuidancePass::kUncond && stream.negative.defined();
  };
  if (passes.size() == 1) {
    input.latent = evaluation_.latents[modality];
    input.context = is_negative(passes[0]) ? stream.negative : stream.positive;
    return input;
  }
  // Passes that share a prompt share its keys and values.
  input.context = stream.positive;
  if (std::any_of(passes.begin(), passes.end(), is_negative)) {
    LTX_ASSIGN_OR_RETURN(input.context, device.Concat({stream.positive, stream.negative}, 0));
  }
  const int64_t batch = stream.positive.dim(0);
  for (const GuidancePass pass : passes) {
    for (int64_t b = 0; b < batch; ++b) {
      input.context_rows.push_back(static_cast<int32_t>(is_negative(pass) ? batch + b : b));
    }
  }
  const std::vector<Tensor> latents(passes.size(), evaluation_.latents[modality]);
  LTX_ASSIGN_OR_RETURN(input.latent, device.Concat(latents, 0));
  return input;
}

dit::BatchPerturbations GuidedDenoiser::PerturbationsOf(const std::vector<GuidancePass>& passes,
                                                        int64_t batch) const {
  using Kind = dit::PerturbationKind;
  dit::BatchPerturbations perturbations;
  bool any = false;
  for (const GuidancePass pass : passes) {
    std::vector<dit::Perturbation> of_pass;
    if (pass == GuidancePass::kPerturbed) {
      for (const Modality m : kModalities) {
        if (!present(m) || !GuiderOf(m).NeedsPerturbed()) continue;
        of_pass.push_back(
            {m == Modality::kVideo ? Kind::kSkipVideoSelfAttention : Kind::kSkipAudioSelfAttention,
             GuiderOf(m).stg_blocks});
      }
    } else if (pass == GuidancePass::kIsolated) {
      of_pass = {{Kind::kSkipAudioToVideoAttention, std::nullopt},
                 {Kind::kSkipVideoToAudioAttention, std::nullopt}};
    }
    any |= !of_pass.empty();
    perturbations.insert(perturbations.end(), batch, of_pass);
  }
  return any ? perturbations : dit::BatchPerturbations();
}

absl::Status GuidedDenoiser::Forward() {
  if (pending() == 0) return absl::FailedPreconditionError("no forward is pending");
  const std::vector<GuidancePass>& passes = groups_[next_group_];
  PerModality<dit::Modality> inputs;
  int64_t batch = 1;
  for (const Modality m : kModalities) {
    if (!present(m)) continue;
    LTX_ASSIGN_OR_RETURN(inputs[m], InputOf(m, passes));
    batch = evaluation_.latents[m].dim(0);
  }
  LTX_ASSIGN_OR_RETURN(
      const dit::Prediction prediction,
      dit::PredictDenoised(*transformer_, present(Modality::kVideo) ? &inputs.video : nullptr,
                           present(Modality::kAudio) ? &inputs.audio : nullptr,
                           PerturbationsOf(passes, batch)));
  for (const Modality m : kModalities) {
    if (!present(m)) continue;
    const Tensor& all =
        m == Modality::kVideo ? prediction.denoised.video : prediction.denoised.audio;
    for (size_t i = 0; i < passes.size(); ++i) {
      const auto row = static_cast<int64_t>(i) * batch;
      LTX_ASSIGN_OR_RETURN(const Tensor rows, all.Rows(row, row + batch));
      predictions_[m][static_cast<size_t>(passes[i])] = rows;
      if (options_.observer) {
        options_.observer(absl::StrCat("call", evaluation_.index, ".", ModalityName(m), ".",
                                       GuidancePassName(passes[i])),
                          rows);
      }
    }
  }
  ++next_group_;
  return absl::OkStatus();
}

absl::StatusOr<sampling::Estimates> GuidedDenoiser::Finish() {
  if (!under_way_ || pending() > 0) {
    return absl::FailedPreconditionError("an evaluation without all its forwards");
  }
  under_way_ = false;
  const auto of = [this](Modality m, GuidancePass pass, bool wanted) {
    return wanted ? predictions_[m][static_cast<size_t>(pass)] : Tensor();
  };
  sampling::Estimates estimates;
  for (const Modality m : kModalities) {
    if (!present(m)) continue;
    estimates.unconditioned[m] = of(m, GuidancePass::kUncond, true);
    if (!Keeps(m)) {
      // Passes that only the other modality asks for do not count here.
      const GuiderParams& guider = GuiderOf(m);
      const Tensor uncond = of(m, GuidancePass::kUncond, guider.NeedsUnconditioned());
      const Tensor perturbed = of(m, GuidancePass::kPerturbed, guider.NeedsPerturbed());
      const Tensor isolated = of(m, GuidancePass::kIsolated, guider.NeedsIsolated());
      last_[m] = of(m, GuidancePass::kCond, true);
      if (uncond.defined() || perturbed.defined() || isolated.defined()) {
        LTX_ASSIGN_OR_RETURN(last_[m], transformer_->device().Guide(last_[m], uncond, perturbed,
                                                                    isolated, guider.scales()));
      }
    }
    estimates.denoised[m] = last_[m];
  }
  predictions_ = {};
  return estimates;
}

}  // namespace ltx::pipeline
