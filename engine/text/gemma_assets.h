#ifndef LTX_ENGINE_TEXT_GEMMA_ASSETS_H_
#define LTX_ENGINE_TEXT_GEMMA_ASSETS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_set.h"
#include "nlohmann/json.hpp"

namespace ltx::text {

/// What a text encoder path holds, whichever of the two published layouts it has:
///  * one safetensors file, with the Hugging Face config as metadata `gemma_config`, the tokenizer
///    as the byte tensor `tokenizer_json` and side files as byte tensors `hf_asset__<name>` or, in
///    older packs, as metadata strings under their own name;
///  * a Hugging Face folder, searched recursively: `config.json`, `tokenizer.json`,
///    `tokenizer_config.json`, and every `*.safetensors` below the folder of the first
///    `model*.safetensors`.
struct GemmaAssets {
  /// The path it was loaded from, for messages.
  std::string source;
  nlohmann::json config;
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  checkpoint::WeightSet weights;
};

/// NOT_FOUND if the path or a required part is missing, INVALID_ARGUMENT for parts that are
/// malformed; both name the path and the part.
absl::StatusOr<GemmaAssets> LoadGemmaAssets(const std::string& path);
/// The same of a text encoder file that is open.
absl::StatusOr<GemmaAssets> LoadGemmaAssets(
    const std::shared_ptr<const checkpoint::SafetensorsFile>& file);

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_GEMMA_ASSETS_H_
