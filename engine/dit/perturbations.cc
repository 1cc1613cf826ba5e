#include "engine/dit/perturbations.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ltx::dit {
namespace {

bool Skips(const std::vector<Perturbation>& sample, PerturbationKind kind, int64_t block) {
  return std::any_of(sample.begin(), sample.end(), [&](const Perturbation& perturbation) {
    if (perturbation.kind != kind) return false;
    if (!perturbation.blocks.has_value()) return true;
    return std::find(perturbation.blocks->begin(), perturbation.blocks->end(), block) !=
           perturbation.blocks->end();
  });
}

}  // namespace

absl::StatusOr<PerturbationKind> ParsePerturbationKind(absl::string_view name) {
  if (name == "SKIP_VIDEO_SELF_ATTN") return PerturbationKind::kSkipVideoSelfAttention;
  if (name == "SKIP_AUDIO_SELF_ATTN") return PerturbationKind::kSkipAudioSelfAttention;
  if (name == "SKIP_A2V_CROSS_ATTN") return PerturbationKind::kSkipAudioToVideoAttention;
  if (name == "SKIP_V2A_CROSS_ATTN") return PerturbationKind::kSkipVideoToAudioAttention;
  return absl::InvalidArgumentError(
      absl::StrCat("perturbation \"", name,
                   "\" is unknown; legal are SKIP_VIDEO_SELF_ATTN, SKIP_AUDIO_SELF_ATTN, "
                   "SKIP_A2V_CROSS_ATTN, SKIP_V2A_CROSS_ATTN"));
}

std::vector<BatchRun> RunsOf(const KeepFlags& keep, int64_t batch) {
  std::vector<BatchRun> runs;
  for (int64_t b = 0; b < batch; ++b) {
    const bool kept = keep.all_kept() || keep.weights[b] != 0.0f;
    if (runs.empty() || runs.back().kept != kept) runs.push_back({b, b, kept});
    runs.back().end = b + 1;
  }
  return runs;
}

KeepFlags KeepFlagsOf(const BatchPerturbations& perturbations, PerturbationKind kind,
                      int64_t block) {
  KeepFlags flags;
  int64_t skipped = 0;
  for (const std::vector<Perturbation>& sample : perturbations) {
    const bool skips = Skips(sample, kind, block);
    flags.weights.push_back(skips ? 0.0f : 1.0f);
    skipped += skips;
  }
  flags.all_skipped = skipped > 0 && skipped == static_cast<int64_t>(perturbations.size());
  if (skipped == 0) flags.weights.clear();
  return flags;
}

}  // namespace ltx::dit
