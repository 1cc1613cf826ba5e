#ifndef LTX_ENGINE_DIT_TABLE_ROWS_H_
#define LTX_ENGINE_DIT_TABLE_ROWS_H_

#include <cstdint>

namespace ltx::dit {

/// What the rows of the learned modulation tables mean.

/// Of a block's own table. Shift comes before scale here.
enum ModulationRow : int64_t {
  kSelfShift,
  kSelfScale,
  kSelfGate,
  kFeedForwardShift,
  kFeedForwardScale,
  kFeedForwardGate,
  kTextShift,
  kTextScale,
  kTextGate,
};

/// Of the prompt table.
enum PromptRow : int64_t { kPromptShift, kPromptScale, kPromptRows };

/// Of the cross-modal table. Scale comes before shift here; the gate follows as the last row.
enum CrossRow : int64_t {
  kAudioToVideoScale,
  kAudioToVideoShift,
  kVideoToAudioScale,
  kVideoToAudioShift,
  kCrossScaleShiftRows,
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TABLE_ROWS_H_
