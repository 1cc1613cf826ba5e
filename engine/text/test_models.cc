#include "engine/text/test_models.h"

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/safetensors.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"

namespace ltx::text {

using checkpoint::GemmaFamily;
using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsWriter;
using checkpoint::WeightSet;
using nlohmann::json;

std::unique_ptr<Device> MakeDevice() {
  auto device = cpu::CpuDevice::Create({});
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

void AddRandom(const TensorShapes& shapes, SafetensorsWriter* writer) {
  for (const auto& [name, shape] : shapes) {
    std::seed_seq seed(name.begin(), name.end());
    std::mt19937 generator(seed);
    std::vector<float> values(static_cast<size_t>(shape.num_elements()));
    for (float& value : values) {
      // Raw engine output: standard distributions differ between libraries.
      value = static_cast<float>(generator() >> 8) / static_cast<float>(1 << 24) - 0.5f;
    }
    writer->Floats(name, shape, values);
  }
}

json TinyGemmaConfig(GemmaFamily family) {
  json text = {{"vocab_size", 24},
               {"hidden_size", 8},
               {"intermediate_size", 12},
               {"num_hidden_layers", 2},
               {"layer_types", {"sliding_attention", "full_attention"}},
               {"num_attention_heads", 2},
               {"num_key_value_heads", 1},
               {"head_dim", 4},
               {"sliding_window", 3}};
  if (family == GemmaFamily::kGemma3) {
    return {{"model_type", "gemma3"}, {"text_config", text}, {"image_token_index", 20}};
  }
  text["global_head_dim"] = 8;
  text["num_global_key_value_heads"] = 2;
  text["attention_k_eq_v"] = true;
  return {{"model_type", "gemma4_unified"},
          {"text_config", text},
          {"image_token_id", 20},
          {"video_token_id", 21},
          {"audio_token_id", 22}};
}

TensorShapes TowerShapes(GemmaFamily family, absl::string_view prefix) {
  const bool gemma4 = family == GemmaFamily::kGemma4;
  TensorShapes shapes;
  shapes[absl::StrCat(prefix, "embed_tokens.weight")] = {24, 8};
  shapes[absl::StrCat(prefix, "norm.weight")] = {8};
  for (int i = 0; i < 2; ++i) {
    const bool global = gemma4 && i == 1;
    const int64_t head_dim = global ? 8 : 4;
    const int64_t kv_width = global ? 16 : 4;
    const std::string layer = absl::StrCat(prefix, "layers.", i, ".");
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      shapes[absl::StrCat(layer, norm, ".weight")] = {8};
    }
    shapes[layer + "self_attn.q_norm.weight"] = {head_dim};
    shapes[layer + "self_attn.k_norm.weight"] = {head_dim};
    shapes[layer + "self_attn.q_proj.weight"] = {2 * head_dim, 8};
    shapes[layer + "self_attn.k_proj.weight"] = {kv_width, 8};
    if (!global) shapes[layer + "self_attn.v_proj.weight"] = {kv_width, 8};
    shapes[layer + "self_attn.o_proj.weight"] = {8, 2 * head_dim};
    shapes[layer + "mlp.gate_proj.weight"] = {12, 8};
    shapes[layer + "mlp.up_proj.weight"] = {12, 8};
    shapes[layer + "mlp.down_proj.weight"] = {8, 12};
    if (gemma4) shapes[layer + "layer_scalar"] = {1};
  }
  return shapes;
}

TensorShapes ConnectorShapes(const checkpoint::ConnectorConfig& config, absl::string_view prefix) {
  const int64_t width = config.width();
  TensorShapes shapes;
  const auto linear = [&](const std::string& name, int64_t in, int64_t out, bool bias) {
    shapes[name + ".weight"] = {out, in};
    if (bias) shapes[name + ".bias"] = {out};
  };
  shapes[absl::StrCat(prefix, "learnable_registers")] = {128, width};
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string block = absl::StrCat(prefix, "transformer_1d_blocks.", i, ".");
    for (const char* name : {"to_q", "to_k", "to_v", "to_out.0"}) {
      linear(absl::StrCat(block, "attn1.", name), width, width, true);
    }
    shapes[block + "attn1.q_norm.weight"] = {width};
    shapes[block + "attn1.k_norm.weight"] = {width};
    if (config.apply_gated_attention) {
      linear(block + "attn1.to_gate_logits", width, config.num_attention_heads, true);
    }
    linear(block + "ff.net.0.proj", width, 4 * width, config.ff_bias);
    linear(block + "ff.net.2", 4 * width, width, config.ff_bias);
  }
  return shapes;
}

std::string TinyTokenizerJson() {
  return R"({
    "added_tokens": [{"id": 0, "content": "<pad>", "special": true},
                     {"id": 1, "content": "<eos>", "special": true},
                     {"id": 2, "content": "<bos>", "special": true}],
    "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "_"},
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "?", "fuse_unk": true,
              "vocab": {"<pad>": 0, "<eos>": 1, "<bos>": 2, "?": 3, "_": 4, "a": 5, "b": 6,
                        "c": 7, "d": 8, "_a": 9, "ab": 10, "cd": 11, "<image>": 20, "z": 23},
              "merges": [["_", "a"], ["a", "b"], ["c", "d"]]}})";
}

std::string TinyTokenizerConfig() {
  return R"({"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>",
             "image_token": "<image>"})";
}

WeightSet OpenWeights(const SafetensorsWriter& writer, absl::string_view name) {
  const std::string path =
      absl::StrCat(checkpoint::MakeTestFolder(name), "/", name, ".safetensors");
  writer.WriteTo(path);
  const auto file = SafetensorsFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  WeightSet weights;
  EXPECT_TRUE(weights.Add(*file).ok());
  return weights;
}

}  // namespace ltx::text
