#ifndef LTX_ENGINE_DIT_BLOCK_TABLES_H_
#define LTX_ENGINE_DIT_BLOCK_TABLES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/modality.h"
#include "engine/dit/modulation.h"
#include "engine/dit/stream_config.h"
#include "kernels/device.h"

namespace ltx::dit {

/// What the timesteps of a forward say to all blocks alike, one stream.
struct SharedModulation {
  /// 9 (6) vectors per timestep: shift, scale, gate of self-attention; of the feed-forward; of
  /// text attention.
  Modulation main;
  /// Shift and scale of the text tokens, from the stream's own sigma. Undefined: tables alone.
  Modulation prompt;
  /// Scale and shift towards audio-to-video, then towards video-to-audio. Defined if the other
  /// stream is present, as is `cross_gate`.
  Modulation cross;
  /// Gate of what arrives from the other stream, from the other stream's sigma.
  Modulation cross_gate;
};

/// The same with one block's learned vectors added.
struct BlockModulation {
  Modulation main;
  Modulation prompt;
  Modulation cross;
  Modulation cross_gate;
};

/// The modulation of all blocks, one stream.
class StreamModulations {
 public:
  absl::StatusOr<BlockModulation> Of(Device& device, int64_t block) const;

 private:
  friend class BlockTables;
  BlockModulations main_;
  BlockModulations prompt_;
  BlockModulations cross_;
  BlockModulations cross_gate_;
  bool has_prompt_ = false;
  bool has_cross_ = false;
};

/// The learned modulation tables of neighbouring blocks, one stream.
class BlockTables {
 public:
  BlockTables() = default;
  /// Reads scale_shift_table, prompt_scale_shift_table (with cross_attention_adaln) and, if
  /// `cross`, scale_shift_table_a2v_ca_<stream> of the blocks [first, first + count);
  /// "transformer_blocks.<i>." stands below the loader's prefix.
  static absl::StatusOr<BlockTables> Load(checkpoint::WeightLoader loader, StreamKind kind,
                                          const StreamConfig& config, bool cross, int64_t first,
                                          int64_t count);

  absl::StatusOr<StreamModulations> AddTo(Device& device, const SharedModulation& shared) const;

 private:
  int64_t width_ = 0;
  /// [blocks, rows * width] each.
  Tensor main_;
  Tensor prompt_;
  /// Scale and shift rows, then the gate.
  Tensor cross_;
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_BLOCK_TABLES_H_
