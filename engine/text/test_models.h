#ifndef LTX_ENGINE_TEXT_TEST_MODELS_H_
#define LTX_ENGINE_TEXT_TEST_MODELS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/checkpoint/test_files.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/weight_set.h"
#include "kernels/device.h"
#include "kernels/shape.h"
#include "nlohmann/json.hpp"

namespace ltx::text {

/// Small models with random weights, as files.

/// A CPU device with its default options; aborts the test program if there is none.
std::unique_ptr<Device> MakeDevice();

/// Official tensor names and shapes.
using TensorShapes = std::map<std::string, Shape>;

/// Adds every tensor of `shapes` to `writer`, drawn evenly from [-0.5, 0.5). The values of a tensor
/// depend on its name alone.
void AddRandom(const TensorShapes& shapes, checkpoint::SafetensorsWriter* writer);

/// A Hugging Face config of a tower with one sliding layer (window 3) and one full layer, 24
/// tokens, hidden size 8. Gemma 4: the full layer takes its values from its keys.
nlohmann::json TinyGemmaConfig(checkpoint::GemmaFamily family);

/// The tensors of the tower of that config, below `prefix`.
TensorShapes TowerShapes(checkpoint::GemmaFamily family, absl::string_view prefix);

/// The tensors of one connector below `prefix`.
TensorShapes ConnectorShapes(const checkpoint::ConnectorConfig& config, absl::string_view prefix);

/// Contents of a tokenizer.json and tokenizer_config.json with 24 tokens: letters a to d, "_" for a
/// blank, a few merges, bytes missing (other characters become the unknown token).
std::string TinyTokenizerJson();
std::string TinyTokenizerConfig();

/// Writes `writer` below the test's temporary folder and opens it as a weight set.
checkpoint::WeightSet OpenWeights(const checkpoint::SafetensorsWriter& writer,
                                  absl::string_view name);

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_TEST_MODELS_H_
