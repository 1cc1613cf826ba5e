#ifndef LTX_ENGINE_PIPELINE_GUIDANCE_PASSES_H_
#define LTX_ENGINE_PIPELINE_GUIDANCE_PASSES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/dit/perturbations.h"
#include "engine/pipeline/parameter_set.h"
#include "engine/sampling/latent_state.h"
#include "kernels/op_types.h"

namespace ltx::pipeline {

/// What a guided evaluation runs the transformer with (reference: denoisers.py:_guided_denoise).
enum class GuidancePass : uint8_t {
  kCond,       ///< The prompt.
  kUncond,     ///< The negative prompt, for both modalities.
  kPerturbed,  ///< The prompt, without self-attention in the STG blocks.
  kIsolated,   ///< The prompt, the modalities not seeing each other.
};
inline constexpr int kGuidancePassCount = 4;

/// "cond", "uncond", "ptb", "mod": the reference's names.
absl::string_view GuidancePassName(GuidancePass pass);
/// The names joined by "+".
std::string GuidancePassNames(absl::Span<const GuidancePass> passes);

/// Whether a modality's own settings make use of a pass. Scales count as neutral within a relative
/// 1e-9, as in the reference.
bool UsesPass(const GuidanceSettings& settings, GuidancePass pass);

/// True if a modality keeps its last prediction in this step of the schedule, from 0.
bool SkipsStep(const GuidanceSettings& settings, int64_t step);

/// The passes of an evaluation, in order: those that a present modality which is not skipped in
/// this step makes use of. None if all of them keep their predictions. The reference runs the
/// passes of skipped modalities too, which changes nothing: passes do not see each other.
std::vector<GuidancePass> PassesAt(const sampling::PerModality<GuidanceSettings>& settings,
                                   const sampling::PerModality<bool>& present, int64_t step);

/// What a pass leaves out of the blocks.
std::vector<dit::Perturbation> PerturbationsOf(
    GuidancePass pass, const sampling::PerModality<GuidanceSettings>& settings);

/// The scales in the form that the device takes.
GuidanceScales ScalesOf(const GuidanceSettings& settings);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_GUIDANCE_PASSES_H_
