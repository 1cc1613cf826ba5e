#ifndef LTX_TESTS_LORA_MODEL_LORA_MODEL_H_
#define LTX_TESTS_LORA_MODEL_LORA_MODEL_H_

#include <string>

namespace ltx::testing {

/// Full models with a distilled LoRA under the official key names, made when a test runs. The
/// adapter's factors are random and small; it changes the attention and feed-forward weights of
/// every block.

/// The adapter's file name.
inline constexpr char kLoraName[] = "tiny-distilled-lora.safetensors";

/// Makes a model set in the folder `parent`/model: the files of ltx-tiny, declared to be a full
/// model, and the adapter, which leaves clips presentable. `stranger`, if not empty, is one more
/// module of it, which no transformer has. Returns the set's path.
std::string MakeLoraModel(const std::string& parent, const std::string& stranger = "");

/// The same with random weights everywhere and proportions as at full size: what decides a clip's
/// memory is the transformer, where in ltx-tiny it is the decoder.
std::string MakeWideLoraModel(const std::string& parent);

}  // namespace ltx::testing

#endif  // LTX_TESTS_LORA_MODEL_LORA_MODEL_H_
