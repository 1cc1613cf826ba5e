#ifndef LTX_ENGINE_PIPELINE_WORK_UNIT_H_
#define LTX_ENGINE_PIPELINE_WORK_UNIT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ltx::pipeline {

/// What a work unit belongs to.
enum class Phase : uint8_t { kText, kStage1, kUpsample, kStage2, kVideoDecode, kAudioDecode };
inline constexpr int kPhaseCount = 6;

/// "text", "stage1", "upsample", "stage2", "vdecode", "adecode".
constexpr absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kText:
      return "text";
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

/// One uninterruptible piece of a job: unit `index` (from 1) of `count` in its phase.
struct WorkUnit {
  Phase phase = Phase::kText;
  int index = 1;
  int count = 1;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_WORK_UNIT_H_
