#ifndef LTX_TOOLS_RANDOM_MODEL_MODEL_CONFIGS_H_
#define LTX_TOOLS_RANDOM_MODEL_MODEL_CONFIGS_H_

#include <string>

#include "nlohmann/json.hpp"
#include "tools/random_model/model_size.h"

namespace ltx::random_model {

// The configs that checkpoint files of a size carry in their metadata, in the form of the published
// ones.

/// `config` of a transformer file: transformer and text connectors.
nlohmann::json TransformerConfigOf(const ModelSize& size);
/// `gemma_config` of a text encoder file.
nlohmann::json GemmaConfigOf(const ModelSize& size);
/// `config` of a video VAE file: encoder and convolutional decoder.
nlohmann::json VideoVaeConfigOf(const ModelSize& size);
/// `config` of an audio VAE file: VAE and two-stage vocoder.
nlohmann::json AudioVaeConfigOf(const ModelSize& size);
/// `config` of a spatial x2 upsampler file.
nlohmann::json UpsamplerConfigOf(const ModelSize& size);
/// `config` of a duration head file.
nlohmann::json DurationHeadConfigOf(const ModelSize& size);

/// `model_version` of all files.
std::string VersionOf(const ModelSize& size);
/// What transformer and text encoder of a 2.5 model name each other by.
inline constexpr char kGemmaVersion[] = "random-gemma4";

/// A tokenizer that spells texts in bytes: one token each, after the special ones.
nlohmann::json TokenizerJson();
nlohmann::json TokenizerConfigJson();

}  // namespace ltx::random_model

#endif  // LTX_TOOLS_RANDOM_MODEL_MODEL_CONFIGS_H_
