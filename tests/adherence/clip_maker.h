#ifndef LTX_TESTS_ADHERENCE_CLIP_MAKER_H_
#define LTX_TESTS_ADHERENCE_CLIP_MAKER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/model.h"
#include "kernels/device.h"
#include "tests/adherence/clip_scoring.h"

namespace ltx::adherence {

/// A finished clip and what can be read from it.
struct ScoredClip {
  /// [F, H, W, 3] in [0, 1].
  std::vector<float> frames;
  int64_t num_frames = 0, height = 0, width = 0;
  ClipScore score;
  /// Batch rows that the transformer evaluated: what guidance costs, on any machine.
  int passes = 0;

  absl::Span<const float> Frame(int64_t index) const {
    const int64_t values = height * width * 3;
    return absl::MakeConstSpan(frames).subspan(index * values, values);
  }
};

/// Generates with ltx-tiny on the CPU in f32.
class ClipMaker {
 public:
  static absl::StatusOr<ClipMaker> Create();

  const pipeline::Model& model() const { return *model_; }
  absl::StatusOr<ScoredClip> Make(const pipeline::GenerationRequest& request) const;

 private:
  ClipMaker() = default;

  std::unique_ptr<Device> device_;
  std::unique_ptr<pipeline::Model> model_;
};

}  // namespace ltx::adherence

#endif  // LTX_TESTS_ADHERENCE_CLIP_MAKER_H_
