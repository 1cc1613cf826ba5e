#include "engine/text/tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/text/unicode_trim.h"
#include "engine/text/utf8.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"

namespace ltx::text {
namespace {

using nlohmann::json;

absl::Status ConfigError(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer_config.json: ", what));
}

/// A special token's text: plain, or an object with "content". Empty if absent or null.
absl::StatusOr<std::string> SpecialToken(const json& config, const char* name) {
  const auto it = config.find(name);
  if (it == config.end() || it->is_null()) return std::string();
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object()) {
    const auto content = it->find("content");
    if (content != it->end() && content->is_string()) return content->get<std::string>();
  }
  return ConfigError(absl::StrCat(name, " is neither text nor an object with content"));
}

/// Every special token that the config names: members that end in "_token" and the lists of extra
/// ones. They count as added tokens even where tokenizer.json does not list them as such.
std::vector<std::string> NamedSpecialTokens(const json& config) {
  std::vector<std::string> tokens;
  const auto add = [&tokens](const json& value) {
    if (value.is_string()) tokens.push_back(value.get<std::string>());
    if (value.is_object() && value.contains("content") && value["content"].is_string()) {
      tokens.push_back(value["content"].get<std::string>());
    }
  };
  for (const auto& item : config.items()) {
    if (absl::EndsWith(item.key(), "_token")) add(item.value());
    if (item.key() == "extra_special_tokens" || item.key() == "additional_special_tokens") {
      for (const json& value : item.value()) add(value);
    }
  }
  return tokens;
}

/// An optional boolean; a null counts as false.
absl::StatusOr<bool> ConfigFlag(const json& config, const char* name) {
  const auto it = config.find(name);
  if (it == config.end() || it->is_null()) return false;
  if (!it->is_boolean()) return ConfigError(absl::StrCat(name, " is not a boolean"));
  return it->get<bool>();
}

}  // namespace

absl::StatusOr<Tokenizer> Tokenizer::Create(absl::string_view tokenizer_json,
                                            absl::string_view tokenizer_config_json,
                                            const TokenizerLimits& limits) {
  if (limits.max_tokens < 1 || limits.max_bytes < 0) {
    return absl::InvalidArgumentError("tokenizer limits: max_tokens must be at least 1");
  }
  LTX_ASSIGN_OR_RETURN(TokenizerDefinition definition, ParseTokenizerJson(tokenizer_json));
  LTX_ASSIGN_OR_RETURN(BpeModel model, BpeModel::Create(&definition));
  Tokenizer tokenizer(std::move(model), limits);
  tokenizer.normalizer_ = std::move(definition.normalizer);
  tokenizer.split_after_ = std::move(definition.split_after);
  tokenizer.prefix_ids_ = std::move(definition.prefix_ids);
  tokenizer.suffix_ids_ = std::move(definition.suffix_ids);
  tokenizer.max_id_ = tokenizer.model_.max_id();
  // Of two tokens with the same text the special one is found.
  std::stable_partition(definition.added_tokens.begin(), definition.added_tokens.end(),
                        [](const AddedToken& token) { return token.special; });
  for (const AddedToken& token : definition.added_tokens) {
    tokenizer.added_ids_.try_emplace(token.content, token.id);
    tokenizer.max_id_ = std::max(tokenizer.max_id_, token.id);
    if (token.normalized) {
      tokenizer.normalized_tokens_.Add(tokenizer.Normalize(token.content), token.id);
    } else {
      tokenizer.raw_tokens_.Add(token.content, token.id);
    }
  }
  tokenizer.added_tokens_ = std::move(definition.added_tokens);
  tokenizer.decoder_ = std::move(definition.decoder);
  LTX_RETURN_IF_ERROR(tokenizer.ReadConfig(tokenizer_config_json));
  return tokenizer;
}

absl::Status Tokenizer::ReadConfig(absl::string_view config_json) {
  const json config =
      json::parse(config_json.begin(), config_json.end(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return ConfigError("not a JSON object");
  if (config.value("truncation_side", json("right")) != "right") {
    return absl::UnimplementedError(
        "tokenizer_config.json: a truncation_side other than right is not supported");
  }
  LTX_ASSIGN_OR_RETURN(const std::string begin, SpecialToken(config, "bos_token"));
  LTX_ASSIGN_OR_RETURN(const std::string end, SpecialToken(config, "eos_token"));
  LTX_ASSIGN_OR_RETURN(std::string pad, SpecialToken(config, "pad_token"));
  if (pad.empty()) pad = end;
  if (begin.empty()) return ConfigError("bos_token is missing, prompts need a begin token");
  if (pad.empty()) return ConfigError("neither pad_token nor eos_token is given");
  begin_token_ = begin;
  begin_id_ = IdOf(begin);
  pad_id_ = IdOf(pad);
  if (begin_id_ < 0 || pad_id_ < 0) {
    return ConfigError(
        absl::StrCat("\"", begin_id_ < 0 ? begin : pad, "\" is not a token of tokenizer.json"));
  }
  for (const std::string& token : NamedSpecialTokens(config)) {
    if (added_ids_.contains(token)) continue;
    if (const int32_t id = model_.IdOf(token); id >= 0) raw_tokens_.Add(token, id);
  }
  if (!config.contains("add_bos_token") && !config.contains("add_eos_token")) {
    return absl::OkStatus();
  }
  // Either key replaces the post-processor of tokenizer.json.
  LTX_ASSIGN_OR_RETURN(const bool add_begin, ConfigFlag(config, "add_bos_token"));
  LTX_ASSIGN_OR_RETURN(const bool add_end, ConfigFlag(config, "add_eos_token"));
  prefix_ids_.clear();
  suffix_ids_.clear();
  if (add_begin) prefix_ids_.push_back(begin_id_);
  if (add_end && !end.empty()) {
    const int32_t end_id = IdOf(end);
    if (end_id < 0) {
      return ConfigError(absl::StrCat("\"", end, "\" is not a token of tokenizer.json"));
    }
    suffix_ids_.push_back(end_id);
  }
  return absl::OkStatus();
}

int32_t Tokenizer::IdOf(absl::string_view token) const {
  const auto it = added_ids_.find(token);
  return it != added_ids_.end() ? it->second : model_.IdOf(token);
}

std::string Tokenizer::Normalize(absl::string_view text) const {
  std::string result(text);
  for (const Replacement& replacement : normalizer_) {
    result = absl::StrReplaceAll(result, {{replacement.pattern, replacement.content}});
  }
  return result;
}

void Tokenizer::EncodeWords(absl::string_view text, std::vector<int32_t>* ids) const {
  while (!text.empty()) {
    const size_t found = split_after_.empty() ? absl::string_view::npos : text.find(split_after_);
    const size_t end = found == absl::string_view::npos ? text.size() : found + split_after_.size();
    model_.Encode(text.substr(0, end), ids);
    text.remove_prefix(end);
  }
}

void Tokenizer::EncodeNormalized(absl::string_view text, std::vector<int32_t>* ids) const {
  size_t begin = 0;
  while (const auto match = normalized_tokens_.Find(text, begin)) {
    EncodeWords(text.substr(begin, match->begin - begin), ids);
    ids->push_back(match->id);
    begin = match->end;
  }
  EncodeWords(text.substr(begin), ids);
}

void Tokenizer::EncodeRaw(absl::string_view text, std::vector<int32_t>* ids) const {
  size_t begin = 0;
  while (const auto match = raw_tokens_.Find(text, begin)) {
    EncodeNormalized(Normalize(text.substr(begin, match->begin - begin)), ids);
    ids->push_back(match->id);
    begin = match->end;
  }
  EncodeNormalized(Normalize(text.substr(begin)), ids);
}

absl::Status Tokenizer::CheckText(absl::string_view text) const {
  if (static_cast<int64_t>(text.size()) > limits_.max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "prompt: ", text.size(), " bytes are too many, at most ", limits_.max_bytes, " are taken"));
  }
  if (const std::optional<size_t> bad = FindInvalidUtf8(text); bad.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt: the bytes from offset ", *bad, " on are not UTF-8"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text) const {
  LTX_RETURN_IF_ERROR(CheckText(text));
  std::vector<int32_t> ids = prefix_ids_;
  EncodeRaw(text, &ids);
  ids.insert(ids.end(), suffix_ids_.begin(), suffix_ids_.end());
  return ids;
}

absl::StatusOr<TokenizedPrompt> Tokenizer::Tokenize(absl::string_view prompt) const {
  LTX_RETURN_IF_ERROR(CheckText(prompt));
  TokenizedPrompt result;
  std::vector<int32_t> text_ids;
  EncodeRaw(TrimUnicodeWhitespace(prompt), &text_ids);
  const int64_t total =
      static_cast<int64_t>(prefix_ids_.size() + text_ids.size() + suffix_ids_.size());
  const int64_t room =
      limits_.max_tokens - static_cast<int64_t>(prefix_ids_.size() + suffix_ids_.size());
  if (static_cast<int64_t>(text_ids.size()) > room) {
    text_ids.resize(static_cast<size_t>(std::max<int64_t>(room, 0)));
  }
  result.ids = prefix_ids_;
  result.ids.insert(result.ids.end(), text_ids.begin(), text_ids.end());
  result.ids.insert(result.ids.end(), suffix_ids_.begin(), suffix_ids_.end());
  int64_t prepended = 0;
  if (result.ids.empty() || result.ids.front() != begin_id_) {
    result.ids.insert(result.ids.begin(), begin_id_);
    prepended = 1;
  }
  if (static_cast<int64_t>(result.ids.size()) > limits_.max_tokens) {
    result.ids.resize(static_cast<size_t>(limits_.max_tokens));
  }
  result.dropped_tokens = total + prepended - static_cast<int64_t>(result.ids.size());
  return result;
}

PaddedPrompt Tokenizer::PadLeft(const TokenizedPrompt& prompt) const {
  const auto length = static_cast<size_t>(limits_.max_tokens);
  const size_t padding = length - std::min(length, prompt.ids.size());
  PaddedPrompt row;
  row.ids.assign(padding, pad_id_);
  row.ids.insert(row.ids.end(), prompt.ids.begin(), prompt.ids.end());
  row.mask.assign(length, 1);
  std::fill_n(row.mask.begin(), padding, 0);
  return row;
}

}  // namespace ltx::text
