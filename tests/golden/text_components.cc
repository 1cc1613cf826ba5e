#include "tests/golden/text_components.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/text_config.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/text/chat_prompt.h"
#include "engine/text/duration_head.h"
#include "engine/text/embeddings_connector.h"
#include "engine/text/feature_extractor.h"
#include "engine/text/feature_rows.h"
#include "engine/text/gemma_assets.h"
#include "engine/text/prompt_encoder.h"
#include "engine/text/prompt_enhancer.h"
#include "engine/text/text_generator.h"
#include "engine/text/text_tower.h"
#include "engine/text/token_sampler.h"
#include "engine/text/tokenizer.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::golden {
namespace {

using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using nlohmann::json;

absl::StatusOr<std::string> StringParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("params.", name, " is no text"));
  }
  return it->get<std::string>();
}

/// A path of `params`, relative to the case file.
absl::StatusOr<std::string> PathParam(const GoldenCase& golden, const char* name) {
  LTX_ASSIGN_OR_RETURN(const std::string relative, StringParam(golden, name));
  return absl::StrCat(golden.folder(), "/", relative);
}

absl::StatusOr<std::string> FileParam(const GoldenCase& golden, const char* name) {
  LTX_ASSIGN_OR_RETURN(const std::string path, PathParam(golden, name));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  return std::string((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
}

const json& Member(const json& object, const char* name) {
  static const json kEmpty = json::object();
  const auto it = object.find(name);
  return it == object.end() ? kEmpty : *it;
}

absl::StatusOr<int64_t> IntMember(const json& object, const char* name) {
  const json& value = Member(object, name);
  if (value.is_number_integer()) return value.get<int64_t>();
  return absl::InvalidArgumentError(absl::StrCat("params: ", name, " is no whole number"));
}

/// The valid tokens of one batch row: a run of ones in its mask.
struct ValidRun {
  int64_t begin = 0;
  int64_t count = 0;
};

absl::StatusOr<std::vector<ValidRun>> ValidRuns(const GoldenCase& golden) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("attention_mask"));
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> mask, golden.InputInts("attention_mask"));
  std::vector<ValidRun> runs;
  const int64_t tokens = shape.dim(1);
  for (int64_t b = 0; b < shape.dim(0); ++b) {
    const auto row = mask.begin() + b * tokens;
    const auto first = std::find(row, row + tokens, 1);
    const auto last = std::find(first, row + tokens, 0);
    if (std::find(last, row + tokens, 1) != row + tokens) {
      return absl::UnimplementedError("a mask with holes between valid tokens");
    }
    runs.push_back({first - row, last - first});
  }
  return runs;
}

/// Batch output [B, T, D] put together from the valid rows of each sample; the rest is zero.
class BatchAssembler {
 public:
  BatchAssembler(Device* device, int64_t batch, int64_t tokens)
      : device_(device), batch_(batch), tokens_(tokens) {}

  absl::Status Put(const std::string& name, int64_t sample, int64_t begin, const Tensor& rows) {
    const int64_t width = rows.dim(-1);
    std::vector<float>& all = values_[name];
    all.resize(static_cast<size_t>(batch_ * tokens_ * width), 0.0f);
    LTX_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(*device_, rows));
    std::copy(values.begin(), values.end(), all.begin() + (sample * tokens_ + begin) * width);
    return absl::OkStatus();
  }

  void Emit(GoldenOutputs* outputs) const {
    for (const auto& [name, values] : values_) {
      const int64_t width = static_cast<int64_t>(values.size()) / (batch_ * tokens_);
      outputs->SetFloats(name, {batch_, tokens_, width}, values);
    }
  }

 private:
  Device* device_;
  int64_t batch_;
  int64_t tokens_;
  std::map<std::string, std::vector<float>> values_;
};

/// Observers return nothing, so the first failure inside one is kept until the model has returned.
class ObserverStatus {
 public:
  void Update(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

absl::Status RunTokenize(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const std::string tokenizer_json, FileParam(golden, "tokenizer_file"));
  LTX_ASSIGN_OR_RETURN(const std::string config, FileParam(golden, "tokenizer_config_file"));
  text::TokenizerLimits limits;
  LTX_ASSIGN_OR_RETURN(limits.max_tokens, IntMember(golden.params(), "max_length"));
  // The limit of the server is not the subject here.
  limits.max_bytes = 64 << 20;
  LTX_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer,
                       text::Tokenizer::Create(tokenizer_json, config, limits));
  LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, golden.InputBytes("prompt_bytes"));
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, golden.InputInts("prompt_offsets"));
  std::vector<int64_t> ids, mask, counts;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i + 1] < offsets[i] ||
        offsets[i + 1] > static_cast<int64_t>(bytes.size())) {
      return absl::InvalidArgumentError("in/prompt_offsets does not fit in/prompt_bytes");
    }
    const std::string prompt(bytes.begin() + offsets[i], bytes.begin() + offsets[i + 1]);
    LTX_ASSIGN_OR_RETURN(const text::TokenizedPrompt tokens, tokenizer.Tokenize(prompt));
    const text::PaddedPrompt row = tokenizer.PadLeft(tokens);
    ids.insert(ids.end(), row.ids.begin(), row.ids.end());
    mask.insert(mask.end(), row.mask.begin(), row.mask.end());
    counts.push_back(static_cast<int64_t>(tokens.ids.size()));
  }
  const auto batch = static_cast<int64_t>(counts.size());
  outputs->SetInts("input_ids", {batch, limits.max_tokens}, ids);
  outputs->SetInts("attention_mask", {batch, limits.max_tokens}, mask);
  outputs->SetInts("num_tokens", {batch}, counts);
  return absl::OkStatus();
}

absl::StatusOr<text::TextTower> LoadTower(const GoldenCase& golden, Device& device) {
  LTX_ASSIGN_OR_RETURN(const checkpoint::GemmaConfig config,
                       checkpoint::ParseGemmaConfig(Member(golden.config(), "gemma_config")));
  return text::TextTower::Load(
      config, WeightLoader(&device, &golden.weights(), DType::kF32, MemoryOwner::kWeightsText));
}

absl::Status RunTower(const GoldenCase& golden, const GoldenContext& context,
                      GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const text::TextTower tower, LoadTower(golden, device));
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("input_ids"));
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, golden.InputInts("input_ids"));
  LTX_ASSIGN_OR_RETURN(const std::vector<ValidRun> runs, ValidRuns(golden));
  const int64_t batch = shape.dim(0), tokens = shape.dim(1);
  LTX_ASSIGN_OR_RETURN(const LinearWeight head, tower.PrepareLogitHead());
  BatchAssembler states(&device, batch, tokens);
  BatchAssembler logits(&device, batch, 1);
  ObserverStatus observed;
  for (int64_t b = 0; b < batch; ++b) {
    const ValidRun run = runs[static_cast<size_t>(b)];
    const auto first = ids.begin() + b * tokens + run.begin;
    const std::vector<int32_t> valid(first, first + run.count);
    const StageObserver observer = [&](absl::string_view name, const Tensor& tensor) {
      observed.Update(states.Put(absl::StrCat("stage.", name), b, run.begin, tensor));
    };
    int64_t index = 0;
    Tensor last;
    const auto read = [&](const Tensor& state) {
      last = state;
      return states.Put(absl::StrCat("hidden_states.", index++), b, run.begin, state);
    };
    LTX_RETURN_IF_ERROR(tower.Forward(valid, run.begin, read, observer));
    LTX_ASSIGN_OR_RETURN(last, device.Slice(last, 1, run.count - 1, run.count));
    LTX_ASSIGN_OR_RETURN(const Tensor scores, tower.Logits(last, head));
    LTX_RETURN_IF_ERROR(logits.Put("logits_last", b, 0, scores));
  }
  LTX_RETURN_IF_ERROR(observed.status());
  states.Emit(outputs);
  logits.Emit(outputs);
  return absl::OkStatus();
}

absl::Status RunGenerate(const GoldenCase& golden, const GoldenContext& context,
                         GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const text::TextTower tower, LoadTower(golden, device));
  LTX_ASSIGN_OR_RETURN(const text::TextGenerator generator,
                       text::TextGenerator::Create(&device, &tower));
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, golden.InputInts("input_ids"));
  LTX_ASSIGN_OR_RETURN(const std::vector<ValidRun> runs, ValidRuns(golden));
  const std::vector<int32_t> row(ids.begin(), ids.end());
  if (runs.size() != 1 || runs[0].begin + runs[0].count != static_cast<int64_t>(row.size())) {
    return absl::UnimplementedError("generation from other rows than one padded on the left");
  }
  for (const json& run : Member(golden.params(), "runs")) {
    text::GenerationOptions options;
    LTX_ASSIGN_OR_RETURN(options.max_new_tokens, IntMember(run, "max_new_tokens"));
    LTX_ASSIGN_OR_RETURN(options.no_repeat_ngram_size, IntMember(run, "no_repeat_ngram_size"));
    // One id or several, as in a Hugging Face config.
    const json& stops = Member(run, "eos_token_id");
    for (const json& stop : stops.is_array() ? stops : json::array({stops})) {
      if (!stop.is_number_integer()) {
        return absl::InvalidArgumentError("params: eos_token_id is no whole number");
      }
      options.stop_ids.push_back(stop.get<int32_t>());
    }
    LTX_ASSIGN_OR_RETURN(const std::unique_ptr<text::TextGeneration> text,
                         generator.Start(row, runs[0].begin, options));
    while (!text->done()) {
      LTX_RETURN_IF_ERROR(text->Advance());
      if (text->tokens().size() > 1) continue;
      outputs->SetFloats("scores_first", {static_cast<int64_t>(text->last_scores().size())},
                         text->last_scores());
    }
    outputs->SetInts(absl::StrCat("tokens.ngram", options.no_repeat_ngram_size),
                     {static_cast<int64_t>(text->tokens().size())},
                     std::vector<int64_t>(text->tokens().begin(), text->tokens().end()));
  }
  return absl::OkStatus();
}

absl::Status RunEnhance(const GoldenCase& golden, const GoldenContext& context,
                        GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const text::TextTower tower, LoadTower(golden, device));
  LTX_ASSIGN_OR_RETURN(const std::string tokenizer_json, FileParam(golden, "tokenizer_file"));
  LTX_ASSIGN_OR_RETURN(const std::string side, FileParam(golden, "tokenizer_config_file"));
  LTX_ASSIGN_OR_RETURN(text::Tokenizer made, text::Tokenizer::Create(tokenizer_json, side));
  const auto tokenizer = std::make_shared<const text::Tokenizer>(std::move(made));
  text::PromptEnhancer::Options options;
  LTX_ASSIGN_OR_RETURN(options.system_prompt, StringParam(golden, "system_prompt"));
  LTX_ASSIGN_OR_RETURN(options.max_new_tokens, IntMember(golden.params(), "max_new_tokens"));
  // The answers are the most likely ones; how others are drawn shows in the first distribution.
  options.temperature = 0;
  LTX_ASSIGN_OR_RETURN(const text::PromptEnhancer enhancer,
                       text::PromptEnhancer::Create(&device, &tower, tokenizer, options));
  LTX_ASSIGN_OR_RETURN(const text::TextGenerator generator,
                       text::TextGenerator::Create(&device, &tower));
  const auto set_ints = [outputs](const std::string& name, auto values) {
    outputs->SetInts(name, {static_cast<int64_t>(values.size())},
                     std::vector<int64_t>(values.begin(), values.end()));
  };
  int number = 0;
  for (const json& item : Member(golden.params(), "prompts")) {
    const std::string prefix = absl::StrCat(number++, ".");
    const auto prompt = item.get<std::string>();
    LTX_ASSIGN_OR_RETURN(const text::ChatRow row,
                         text::MakeChatRow(*tokenizer, options.system_prompt,
                                           text::PromptEnhancer::UserText(prompt)));
    set_ints(prefix + "row", row.ids);
    LTX_ASSIGN_OR_RETURN(const std::unique_ptr<text::PromptRewrite> rewrite,
                         enhancer.Start(prompt, /*seed=*/0));
    while (!rewrite->done()) LTX_RETURN_IF_ERROR(rewrite->Advance());
    set_ints(prefix + "tokens", rewrite->tokens());
    const std::string text = rewrite->Text();
    set_ints(prefix + "text", std::vector<uint8_t>(text.begin(), text.end()));
    text::GenerationOptions first;
    first.max_new_tokens = 1;
    LTX_ASSIGN_OR_RETURN(const std::unique_ptr<text::TextGeneration> one,
                         generator.Start(row.ids, row.padding, first));
    LTX_RETURN_IF_ERROR(one->Advance());
    std::vector<float> probabilities(one->last_scores().size(), 0.0f);
    for (const text::Candidate& candidate : text::CandidatesFor(one->last_scores(), {})) {
      probabilities[static_cast<size_t>(candidate.id)] = static_cast<float>(candidate.probability);
    }
    outputs->SetFloats(prefix + "probabilities_first", {static_cast<int64_t>(probabilities.size())},
                       probabilities);
  }
  return absl::OkStatus();
}

absl::Status RunFeatureExtractor(const GoldenCase& golden, const GoldenContext& context,
                                 GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const checkpoint::TextProjectionConfig config,
                       checkpoint::ParseTextProjectionConfig(golden.config()));
  std::vector<Tensor> states;
  while (golden.HasInput(absl::StrCat("hidden_states.", states.size()))) {
    LTX_ASSIGN_OR_RETURN(Tensor state,
                         golden.Input(device, absl::StrCat("hidden_states.", states.size())));
    states.push_back(std::move(state));
  }
  if (states.empty()) return absl::InvalidArgumentError("in/hidden_states.0 is missing");
  const int64_t batch = states[0].dim(0), tokens = states[0].dim(1);
  const auto num_states = static_cast<int64_t>(states.size());
  LTX_ASSIGN_OR_RETURN(
      const text::FeatureExtractor extractor,
      text::FeatureExtractor::Load(
          config.feature_extractor, states[0].dim(2), num_states,
          WeightLoader(&device, &golden.weights(), DType::kF32, MemoryOwner::kWeightsText)));
  LTX_ASSIGN_OR_RETURN(const std::vector<ValidRun> runs, ValidRuns(golden));
  BatchAssembler all(&device, batch, tokens);
  for (int64_t b = 0; b < batch; ++b) {
    const ValidRun run = runs[static_cast<size_t>(b)];
    text::FeatureRows collected = extractor.StartRows();
    for (const Tensor& state : states) {
      LTX_ASSIGN_OR_RETURN(Tensor valid, state.Rows(b, b + 1));
      LTX_ASSIGN_OR_RETURN(valid, device.Slice(valid, 1, run.begin, run.begin + run.count));
      LTX_RETURN_IF_ERROR(collected.Add(valid));
    }
    LTX_ASSIGN_OR_RETURN(Tensor rows, collected.Take());
    // The case also shows what rows of padding come out as: zeros through the projection.
    LTX_ASSIGN_OR_RETURN(
        rows, device.Pad(rows, 1, run.begin, tokens - run.begin - run.count, PadMode::kZeros));
    LTX_ASSIGN_OR_RETURN(const text::FeatureExtractor::Features features, extractor.Project(rows));
    // The reference has the state index fastest.
    LTX_ASSIGN_OR_RETURN(Tensor normed, rows.Reshape({tokens, num_states, states[0].dim(2)}));
    LTX_ASSIGN_OR_RETURN(normed, device.Permute(normed, {0, 2, 1}));
    LTX_ASSIGN_OR_RETURN(normed, normed.Reshape(rows.shape()));
    LTX_RETURN_IF_ERROR(all.Put("stage.normed", b, 0, normed));
    LTX_RETURN_IF_ERROR(all.Put("video_features", b, 0, features.video));
    LTX_RETURN_IF_ERROR(all.Put("audio_features", b, 0, features.audio));
  }
  all.Emit(outputs);
  return absl::OkStatus();
}

/// Valid positions first, then padding, both in order: the order in which the reference hands rows
/// to a connector.
std::vector<int64_t> ValidFirstOrder(const ValidRun& run, int64_t tokens) {
  std::vector<int64_t> order(static_cast<size_t>(tokens));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + run.begin, order.begin() + run.begin + run.count);
  return order;
}

absl::Status RunConnector(const GoldenCase& golden, const GoldenContext& context,
                          GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const std::string which, StringParam(golden, "which"));
  if (which != "video" && which != "audio") {
    return absl::InvalidArgumentError(absl::StrCat("params.which is ", which));
  }
  LTX_ASSIGN_OR_RETURN(const checkpoint::TextProjectionConfig config,
                       checkpoint::ParseTextProjectionConfig(golden.config()));
  const WeightLoader loader(&device, &golden.weights(), DType::kF32, MemoryOwner::kWeightsText);
  LTX_ASSIGN_OR_RETURN(
      text::EmbeddingsConnector connector,
      text::EmbeddingsConnector::Load(
          which == "video" ? config.video_connector : config.audio_connector,
          loader.Sub(absl::StrCat("model.diffusion_model.", which, "_embeddings_connector."))));
  LTX_ASSIGN_OR_RETURN(const Tensor features, golden.Input(device, "features"));
  LTX_ASSIGN_OR_RETURN(const std::vector<ValidRun> runs, ValidRuns(golden));
  const int64_t batch = features.dim(0), tokens = features.dim(1);
  BatchAssembler all(&device, batch, tokens);
  ObserverStatus observed;
  std::vector<int64_t> order;
  for (int64_t b = 0; b < batch; ++b) {
    const ValidRun run = runs[static_cast<size_t>(b)];
    const StageObserver observer = [&](absl::string_view name, const Tensor& tensor) {
      const std::string stage = absl::StrCat("stage.", name);
      observed.Update(name == "rope_cos" || name == "rope_sin" ? outputs->Set(device, stage, tensor)
                                                               : all.Put(stage, b, 0, tensor));
    };
    LTX_ASSIGN_OR_RETURN(Tensor rows, features.Rows(b, b + 1));
    LTX_ASSIGN_OR_RETURN(rows, device.Slice(rows, 1, run.begin, run.begin + run.count));
    LTX_ASSIGN_OR_RETURN(const Tensor encoding, connector.Forward(rows, tokens, observer));
    LTX_RETURN_IF_ERROR(all.Put("encoding", b, 0, encoding));
    const std::vector<int64_t> sample_order = ValidFirstOrder(run, tokens);
    order.insert(order.end(), sample_order.begin(), sample_order.end());
  }
  LTX_RETURN_IF_ERROR(observed.status());
  all.Emit(outputs);
  outputs->SetInts("stage.sort_index", {batch, tokens}, order);
  // Registers fill the padding, so every row of a context counts.
  outputs->SetInts("attention_mask", {batch, tokens},
                   std::vector<int64_t>(static_cast<size_t>(batch * tokens), 1));
  return absl::OkStatus();
}

/// Drops a leading axis of extent one: contexts of single prompts are kept without it.
absl::Status SetRows(Device& device, const std::string& name, const Tensor& tensor,
                     GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const Tensor rows, tensor.Reshape({tensor.dim(1), tensor.dim(2)}));
  return outputs->Set(device, name, rows);
}

absl::Status RunEncode(const GoldenCase& golden, const GoldenContext& context,
                       GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const std::string path, PathParam(golden, "text_encoder"));
  LTX_ASSIGN_OR_RETURN(const std::string transformer_path, PathParam(golden, "transformer"));
  LTX_ASSIGN_OR_RETURN(const std::string dtype, StringParam(golden, "dtype"));
  LTX_ASSIGN_OR_RETURN(const text::GemmaAssets assets, text::LoadGemmaAssets(path));
  WeightSet transformer;
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<const checkpoint::SafetensorsFile> file,
                       checkpoint::SafetensorsFile::Open(transformer_path));
  LTX_RETURN_IF_ERROR(transformer.Add(file));
  LTX_ASSIGN_OR_RETURN(const checkpoint::TextProjectionConfig config,
                       checkpoint::ParseTextProjectionConfig(golden.config()));
  text::PromptEncoderOptions options;
  if (dtype != "float32" && dtype != "bfloat16") {
    return absl::InvalidArgumentError(absl::StrCat("params.dtype is ", dtype));
  }
  options.compute = ComputeDType(context, dtype == "float32" ? DType::kF32 : DType::kBF16, outputs);
  // The tower's hidden states drift further apart than a transformer's prediction: the bounds of
  // the cases that are in bf16 themselves are about twice this.
  if (outputs->bf16_rel_l2().has_value()) outputs->JudgeAsBFloat16(6e-2);
  LTX_ASSIGN_OR_RETURN(text::PromptEncoder encoder,
                       text::PromptEncoder::Load(&device, assets, config, transformer, options));
  int64_t index = 0;
  for (const json& prompt : Member(golden.params(), "prompts")) {
    if (!prompt.is_string()) return absl::InvalidArgumentError("params.prompts holds no text");
    const std::string prefix = absl::StrCat(index++, ".");
    LTX_ASSIGN_OR_RETURN(const text::TokenizedPrompt tokens,
                         encoder.tokenizer().Tokenize(prompt.get<std::string>()));
    const text::PaddedPrompt row = encoder.tokenizer().PadLeft(tokens);
    const auto length = static_cast<int64_t>(row.ids.size());
    outputs->SetInts(absl::StrCat(prefix, "input_ids"), {length},
                     std::vector<int64_t>(row.ids.begin(), row.ids.end()));
    outputs->SetInts(absl::StrCat(prefix, "attention_mask"), {length},
                     std::vector<int64_t>(row.mask.size(), 1));
    ObserverStatus observed;
    const StageObserver observer = [&](absl::string_view name, const Tensor& tensor) {
      observed.Update(SetRows(device, absl::StrCat(prefix, "stage.", name), tensor, outputs));
    };
    LTX_ASSIGN_OR_RETURN(const text::PromptContexts contexts,
                         encoder.EncodeTokens(tokens, observer));
    LTX_RETURN_IF_ERROR(observed.status());
    LTX_RETURN_IF_ERROR(
        SetRows(device, absl::StrCat(prefix, "video_encoding"), contexts.video, outputs));
    if (contexts.audio.defined()) {
      LTX_RETURN_IF_ERROR(
          SetRows(device, absl::StrCat(prefix, "audio_encoding"), contexts.audio, outputs));
    }
  }
  return absl::OkStatus();
}

/// A clamp of seconds as frames; zero seconds stand for the least there is, one frame.
int64_t ClampFrames(double seconds, double rate) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::nearbyint(seconds * rate)));
}

/// The numbers of a list in `params`, or of the lists in it, in order.
absl::Status AppendNumbers(const json& value, std::vector<double>* numbers) {
  if (value.is_number()) {
    numbers->push_back(value.get<double>());
    return absl::OkStatus();
  }
  if (!value.is_array()) return absl::InvalidArgumentError("params: a list holds no numbers");
  for (const json& item : value) LTX_RETURN_IF_ERROR(AppendNumbers(item, numbers));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> NumbersParam(const GoldenCase& golden, const char* name) {
  std::vector<double> numbers;
  LTX_RETURN_IF_ERROR(AppendNumbers(Member(golden.params(), name), &numbers));
  return numbers;
}

absl::Status RunDurationHead(const GoldenCase& golden, const GoldenContext& context,
                             GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const checkpoint::DurationHeadConfig config,
                       checkpoint::ParseDurationHeadConfig(golden.config()));
  const WeightLoader loader(&device, &golden.weights(), DType::kF32, MemoryOwner::kWeightsText);
  LTX_ASSIGN_OR_RETURN(const text::DurationHead head,
                       text::DurationHead::Load(config, loader.Sub("duration_head.")));
  LTX_ASSIGN_OR_RETURN(const Tensor video, golden.Input(device, "video_tokens"));
  LTX_ASSIGN_OR_RETURN(const Tensor audio, golden.Input(device, "audio_tokens"));
  LTX_ASSIGN_OR_RETURN(const std::vector<double> rates, NumbersParam(golden, "frame_rates"));
  LTX_ASSIGN_OR_RETURN(const std::vector<double> clamps, NumbersParam(golden, "clamps_seconds"));
  const struct {
    const char* name;
    Tensor video, audio;
  } kInputs[] = {
      {"both", video, audio}, {"video_only", video, Tensor()}, {"audio_only", Tensor(), audio}};
  for (const auto& input : kInputs) {
    ObserverStatus observed;
    const StageObserver observer = [&](absl::string_view name, const Tensor& tensor) {
      observed.Update(outputs->Set(device, absl::StrCat("stage.", name), tensor));
    };
    const bool both = input.video.defined() && input.audio.defined();
    LTX_ASSIGN_OR_RETURN(
        const float seconds,
        head.PredictSeconds(input.video, input.audio, both ? observer : StageObserver()));
    LTX_RETURN_IF_ERROR(observed.status());
    outputs->SetFloats(absl::StrCat("seconds.", input.name), {1}, {seconds});
    std::vector<int64_t> frames;
    for (const double rate : rates) {
      for (size_t i = 0; i + 1 < clamps.size(); i += 2) {
        LTX_ASSIGN_OR_RETURN(
            const int64_t count,
            sampling::FramesForDuration(double{seconds}, rate, ClampFrames(clamps[i], rate),
                                        ClampFrames(clamps[i + 1], rate)));
        frames.push_back(count);
      }
    }
    outputs->SetInts(absl::StrCat("frames.", input.name),
                     {static_cast<int64_t>(rates.size()), static_cast<int64_t>(clamps.size() / 2)},
                     frames);
  }
  return absl::OkStatus();
}

absl::Status RunDurationFrames(const GoldenCase& golden, const GoldenContext&,
                               GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, golden.InputShape("rows"));
  LTX_ASSIGN_OR_RETURN(const std::vector<double> rows, golden.InputDoubles("rows"));
  if (shape.rank() != 2 || shape.dim(1) != 4) {
    return absl::InvalidArgumentError("in/rows is not [n, 4]");
  }
  sampling::ScaleFactors factors;
  if (const json& scale = Member(golden.params(), "temporal_scale"); scale.is_number_integer()) {
    factors.time = scale.get<int64_t>();
  }
  std::vector<int64_t> frames;
  for (size_t i = 0; i < rows.size(); i += 4) {
    const int64_t low = ClampFrames(rows[i + 2], rows[i + 1]);
    const int64_t high = ClampFrames(rows[i + 3], rows[i + 1]);
    LTX_ASSIGN_OR_RETURN(const int64_t count,
                         sampling::FramesForDuration(rows[i], rows[i + 1], low, high, factors));
    frames.insert(frames.end(), {low, high, count});
  }
  outputs->SetInts("frames", {shape.dim(0), 3}, frames);
  return absl::OkStatus();
}

}  // namespace

void RegisterTextComponents(ComponentRegistry* registry) {
  registry->emplace("text.tokenize", RunTokenize);
  registry->emplace("text.gemma3_forward", RunTower);
  registry->emplace("text.gemma4_forward", RunTower);
  registry->emplace("text.feature_extractor", RunFeatureExtractor);
  registry->emplace("text.connector", RunConnector);
  registry->emplace("text.encode", RunEncode);
  registry->emplace("text.enhance", RunEnhance);
  registry->emplace("text.generate", RunGenerate);
  registry->emplace("duration.head", RunDurationHead);
  registry->emplace("duration.frames", RunDurationFrames);
}

}  // namespace ltx::golden
