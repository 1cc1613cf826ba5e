#ifndef LTX_ENGINE_DIT_PERTURBATIONS_H_
#define LTX_ENGINE_DIT_PERTURBATIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ltx::dit {

/// What a guidance pass leaves out of some blocks (reference: guidance/perturbations.py).
/// Spatio-temporal guidance skips self-attention, the isolated-modality pass both directions of
/// cross-modal attention.
enum class PerturbationKind : uint8_t {
  kSkipVideoSelfAttention,
  kSkipAudioSelfAttention,
  kSkipAudioToVideoAttention,
  kSkipVideoToAudioAttention,
};

/// The kind of the name the reference uses, e.g. "SKIP_VIDEO_SELF_ATTN". INVALID_ARGUMENT listing
/// the legal names for any other.
absl::StatusOr<PerturbationKind> ParsePerturbationKind(absl::string_view name);

struct Perturbation {
  PerturbationKind kind = PerturbationKind::kSkipVideoSelfAttention;
  /// Blocks concerned; absent means all. An index that no block has matches nothing.
  std::optional<std::vector<int64_t>> blocks;
};

/// One list per sample of the batch. An empty outer list perturbs nothing.
using BatchPerturbations = std::vector<std::vector<Perturbation>>;

/// What one part of one block does with each sample.
struct KeepFlags {
  /// [batch]: 1 keeps the part, 0 skips it. Empty: all keep.
  std::vector<float> weights;
  /// True if there are samples and every one skips the part, so that it need not be computed.
  bool all_skipped = false;

  bool all_kept() const { return weights.empty(); }
};

/// Neighbouring samples [begin, end) that a part treats alike.
struct BatchRun {
  int64_t begin = 0;
  int64_t end = 0;
  bool kept = true;
};

/// The whole batch as runs, in order.
std::vector<BatchRun> RunsOf(const KeepFlags& keep, int64_t batch);

KeepFlags KeepFlagsOf(const BatchPerturbations& perturbations, PerturbationKind kind,
                      int64_t block);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_PERTURBATIONS_H_
