#ifndef LTX_ENGINE_PIPELINE_WORK_UNIT_H_
#define LTX_ENGINE_PIPELINE_WORK_UNIT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ltx::pipeline {

/// What a work unit belongs to.
enum class Phase : uint8_t {
  /// The text model rewrites the prompt, a token a unit.
  kEnhance,
  kText,
  kFuse,
  kStage1,
  kUpsample,
  kStage2,
  kVideoDecode,
  kAudioDecode
};

/// "enhance", "text", "fuse", "stage1", "upsample", "stage2", "vdecode", "adecode".
constexpr absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kEnhance:
      return "enhance";
    case Phase::kText:
      return "text";
    case Phase::kFuse:
      return "fuse";
    case Phase::kStage1:
      return "stage1";
    case Phase::kUpsample:
      return "upsample";
    case Phase::kStage2:
      return "stage2";
    case Phase::kVideoDecode:
      return "vdecode";
    case Phase::kAudioDecode:
      return "adecode";
  }
  return "unknown";
}

/// One uninterruptible piece of a job: unit `index` (from 1) of `count` in its phase. In a
/// denoising stage it is one forward of the transformer.
struct WorkUnit {
  Phase phase = Phase::kText;
  int index = 1;
  int count = 1;
  /// Stages only: the sampling step, from 1, of how many. A step of a second-order sampler makes
  /// two evaluations; its last one belongs to no step and is counted as one more.
  int step = 0;
  int steps = 0;
  /// Guidance passes that the forward evaluates, one batch row each: "cond", "uncond", "ptb",
  /// "mod", or several joined by "+". Empty outside stages.
  std::string passes;
  /// Rows of the forward's batch; 0 outside stages.
  int rows = 0;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_WORK_UNIT_H_
