#ifndef LTX_ENGINE_CHECKPOINT_MODEL_SET_CHECKS_H_
#define LTX_ENGINE_CHECKPOINT_MODEL_SET_CHECKS_H_

#include "absl/status/status.h"
#include "engine/checkpoint/model_set.h"

namespace ltx::checkpoint {

/// Holds the configs of a set against the tensors of their files: names and shapes that follow from
/// a width or a switch, the set of block indices, statistics. Reads headers and statistics only.
/// Also fills in what only tensors tell (keyframe_embedding), and warnings.
/// NOT_FOUND or INVALID_ARGUMENT naming file, tensor and key; UNIMPLEMENTED for stored forms.
absl::Status CheckTensors(ModelSet* set);

/// Holds the configs of a set against each other. INVALID_ARGUMENT naming both files and keys.
absl::Status CheckWidths(const ModelSet& set);

/// Whether the text tower is the one that the transformer was trained with (reference:
/// encoder_configurator.py:_check_gemma_version). May add a warning.
absl::Status CheckGemmaVersion(ModelSet* set);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_MODEL_SET_CHECKS_H_
