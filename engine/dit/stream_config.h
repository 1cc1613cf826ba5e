#ifndef LTX_ENGINE_DIT_STREAM_CONFIG_H_
#define LTX_ENGINE_DIT_STREAM_CONFIG_H_

#include <cstdint>

namespace ltx::dit {

/// Sizes and switches of one stream, the same in all blocks.
struct StreamConfig {
  int64_t width = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  float epsilon = 1e-6f;
  bool gated_attention = false;
  /// Text attention is modulated and gated: nine table rows instead of six, and a prompt table.
  bool cross_attention_adaln = false;
  bool ff_bias = true;

  int64_t table_rows() const { return cross_attention_adaln ? 9 : 6; }
};

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_STREAM_CONFIG_H_
