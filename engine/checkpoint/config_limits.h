#ifndef LTX_ENGINE_CHECKPOINT_CONFIG_LIMITS_H_
#define LTX_ENGINE_CHECKPOINT_CONFIG_LIMITS_H_

#include <cstdint>

namespace ltx::checkpoint {

/// Upper ends of what a config may say. Far above every published model, and low enough that
/// products of a few of them fit 64 bits.

/// Channels and widths; the largest published is the text tower's vocabulary-free width, 15360.
inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxHeads = 1 << 12;
inline constexpr int64_t kMaxLayers = 1 << 10;
/// Entries of a vocabulary.
inline constexpr int64_t kMaxVocabulary = 1 << 24;
/// Kernel extents, strides, dilations.
inline constexpr int64_t kMaxKernel = 1 << 10;

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_CONFIG_LIMITS_H_
