#ifndef LTX_ENGINE_DIT_TENSOR_SHAPES_H_
#define LTX_ENGINE_DIT_TENSOR_SHAPES_H_

#include <cstdint>
#include <map>
#include <string>

#include "engine/checkpoint/transformer_config.h"
#include "kernels/shape.h"

namespace ltx::dit {

/// Names and shapes of tensors in the official layout, for programs that make up weights.
using TensorShapes = std::map<std::string, Shape>;

/// `name`.weight [out, in] and, if `bias`, `name`.bias [out].
void AddLinear(TensorShapes* shapes, const std::string& name, int64_t in, int64_t out,
               bool bias = true);
/// One adaLN-single.
void AddAdaln(TensorShapes* shapes, const std::string& name, int64_t width, int64_t rows);
/// One attention of inner width `inner`.
void AddAttention(TensorShapes* shapes, const std::string& name, int64_t query, int64_t context,
                  int64_t inner, int64_t heads, bool gated);

/// All tensors of the audio-video transformer of a config, below "model.diffusion_model.".
TensorShapes ShapesOf(const checkpoint::TransformerConfig& config);

}  // namespace ltx::dit

#endif  // LTX_ENGINE_DIT_TENSOR_SHAPES_H_
