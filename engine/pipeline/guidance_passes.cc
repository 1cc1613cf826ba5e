#include "engine/pipeline/guidance_passes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ltx::pipeline {
namespace {

using sampling::kModalities;
using sampling::Modality;
using sampling::PerModality;

constexpr GuidancePass kPasses[kGuidancePassCount] = {
    GuidancePass::kCond, GuidancePass::kUncond, GuidancePass::kPerturbed, GuidancePass::kIsolated};

// Python's math.isclose, which decides in the reference.
bool IsClose(double a, double b) {
  constexpr double kRelative = 1e-9;
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b));
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

std::string GuidancePassNames(absl::Span<const GuidancePass> passes) {
  return absl::StrJoin(passes, "+", [](std::string* out, GuidancePass pass) {
    absl::StrAppend(out, GuidancePassName(pass));
  });
}

bool UsesPass(const GuidanceSettings& settings, GuidancePass pass) {
  switch (pass) {
    case GuidancePass::kCond:
      return true;
    case GuidancePass::kUncond:
      return !IsClose(settings.cfg_scale, 1.0);
    case GuidancePass::kPerturbed:
      return !IsClose(settings.stg_scale, 0.0);
    case GuidancePass::kIsolated:
      return !IsClose(settings.modality_scale, 1.0);
  }
  return false;
}

bool SkipsStep(const GuidanceSettings& settings, int64_t step) {
  return settings.skip_step > 0 && step % (settings.skip_step + 1) != 0;
}

std::vector<GuidancePass> PassesAt(const PerModality<GuidanceSettings>& settings,
                                   const PerModality<bool>& present, int64_t step) {
  std::vector<GuidancePass> passes;
  for (const GuidancePass pass : kPasses) {
    const bool used = std::any_of(std::begin(kModalities), std::end(kModalities), [&](Modality m) {
      return present[m] && !SkipsStep(settings[m], step) && UsesPass(settings[m], pass);
    });
    if (used) passes.push_back(pass);
  }
  return passes;
}

std::vector<dit::Perturbation> PerturbationsOf(GuidancePass pass,
                                               const PerModality<GuidanceSettings>& settings) {
  using dit::PerturbationKind;
  std::vector<dit::Perturbation> list;
  if (pass == GuidancePass::kPerturbed) {
    for (const Modality m : kModalities) {
      if (!UsesPass(settings[m], pass)) continue;
      list.push_back({m == Modality::kVideo ? PerturbationKind::kSkipVideoSelfAttention
                                            : PerturbationKind::kSkipAudioSelfAttention,
                      settings[m].stg_blocks});
    }
  }
  if (pass == GuidancePass::kIsolated) {
    list.push_back({PerturbationKind::kSkipAudioToVideoAttention, std::nullopt});
    list.push_back({PerturbationKind::kSkipVideoToAudioAttention, std::nullopt});
  }
  return list;
}

GuidanceScales ScalesOf(const GuidanceSettings& settings) {
  GuidanceScales scales;
  scales.cfg = static_cast<float>(settings.cfg_scale);
  scales.stg = static_cast<float>(settings.stg_scale);
  scales.modality = static_cast<float>(settings.modality_scale);
  scales.rescale = static_cast<float>(settings.rescale_scale);
  return scales;
}

}  // namespace ltx::pipeline
