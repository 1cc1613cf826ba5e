#include "engine/text/tokenizer_json.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"

namespace ltx::text {
namespace {

using nlohmann::json;

/// The parts of the file outside of vocabulary and merges nest about six levels deep; the limit
/// stops a hostile file from building a tree whose destructor would recurse without end.
constexpr size_t kMaxDepth = 32;

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer.json: ", what));
}

absl::Status Unsupported(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("tokenizer.json: ", what, " is not supported"));
}

/// Streams `model.vocab` and `model.merges` into flat containers and keeps the small rest as a
/// tree.
class TokenizerJsonReader final : public nlohmann::json_sax<json> {
 public:
  TokenizerJsonReader(TokenizerDefinition* definition, json* rest)
      : definition_(definition), rest_(rest) {}

  const absl::Status& status() const { return status_; }
  bool saw_vocabulary() const { return saw_vocabulary_; }
  bool saw_merges() const { return saw_merges_; }

  bool null() override { return Scalar(json()); }
  bool boolean(bool value) override { return Scalar(json(value)); }
  bool number_integer(number_integer_t value) override { return Scalar(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return Scalar(json(value)); }
  bool binary(binary_t&) override { return Fail("binary value"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (mode_ != Mode::kVocabulary) return Scalar(json(value));
    if (value > std::numeric_limits<int32_t>::max()) {
      return Fail(absl::StrCat("model.vocab: id ", value, " is out of range"));
    }
    definition_->vocabulary[std::move(token_)] = static_cast<int32_t>(value);
    return true;
  }

  bool string(string_t& value) override {
    if (mode_ == Mode::kMerges) return JoinedMerge(value);
    if (mode_ == Mode::kMergePair) {
      merge_parts_.push_back(std::move(value));
      return merge_parts_.size() <= 2 || Fail("model.merges: an entry has more than two parts");
    }
    return Scalar(json(std::move(value)));
  }

  bool key(string_t& value) override {
    if (mode_ == Mode::kVocabulary) {
      token_ = std::move(value);
    } else {
      key_ = std::move(value);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (mode_ == Mode::kNormal && InModel() && key_ == "vocab") {
      mode_ = Mode::kVocabulary;
      saw_vocabulary_ = true;
      return true;
    }
    return Open(json::object());
  }

  bool end_object() override {
    if (mode_ == Mode::kVocabulary) {
      mode_ = Mode::kNormal;
      return true;
    }
    return Close();
  }

  bool start_array(std::size_t) override {
    if (mode_ == Mode::kNormal && InModel() && key_ == "merges") {
      mode_ = Mode::kMerges;
      saw_merges_ = true;
      return true;
    }
    if (mode_ == Mode::kMerges) {
      mode_ = Mode::kMergePair;
      merge_parts_.clear();
      return true;
    }
    return Open(json::array());
  }

  bool end_array() override {
    if (mode_ == Mode::kMerges) {
      mode_ = Mode::kNormal;
      return true;
    }
    if (mode_ == Mode::kMergePair) {
      if (merge_parts_.size() != 2) return Fail("model.merges: an entry has not two parts");
      definition_->merges.emplace_back(std::move(merge_parts_[0]), std::move(merge_parts_[1]));
      mode_ = Mode::kMerges;
      return true;
    }
    return Close();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not well-formed JSON at byte ", position));
  }

 private:
  enum class Mode { kNormal, kVocabulary, kMerges, kMergePair };

  bool Fail(absl::string_view what) {
    status_ = Malformed(what);
    return false;
  }

  /// Whether the innermost open container is the value of the root's "model".
  bool InModel() const { return stack_.size() == 2 && in_model_; }

  json* Place(json value) {
    if (stack_.empty()) {
      *rest_ = std::move(value);
      return rest_;
    }
    json* parent = stack_.back();
    if (parent->is_array()) {
      parent->push_back(std::move(value));
      return &parent->back();
    }
    json& slot = (*parent)[key_];
    slot = std::move(value);
    return &slot;
  }

  bool Scalar(json value) {
    if (mode_ == Mode::kVocabulary) return Fail("model.vocab: an id is not a whole number >= 0");
    if (mode_ != Mode::kNormal) return Fail("model.merges: an entry is neither text nor a pair");
    Place(std::move(value));
    return true;
  }

  bool Open(json container) {
    if (mode_ != Mode::kNormal) return Fail("model.vocab or model.merges nests too deep");
    if (stack_.size() >= kMaxDepth) return Fail("nested too deep");
    if (stack_.size() == 1) in_model_ = key_ == "model";
    stack_.push_back(Place(std::move(container)));
    return true;
  }

  bool Close() {
    stack_.pop_back();
    return true;
  }

  /// The older spelling: both parts in one text with one space between them.
  bool JoinedMerge(const std::string& text) {
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return Fail(absl::StrCat("model.merges: \"", text, "\" does not have exactly one space"));
    }
    definition_->merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return true;
  }

  TokenizerDefinition* definition_;
  json* rest_;
  absl::Status status_;
  Mode mode_ = Mode::kNormal;
  bool in_model_ = false;
  bool saw_vocabulary_ = false;
  bool saw_merges_ = false;
  /// Open containers of `rest_`, outermost first. A parent does not move while a child is open.
  std::vector<json*> stack_;
  std::string key_;
  std::string token_;
  std::vector<std::string> merge_parts_;
};

/// `object[name]`, or null if it is absent.
const json& Member(const json& object, const char* name) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

std::string TypeOf(const json& object) {
  const json& type = Member(object, "type");
  return type.is_string() ? type.get<std::string>() : "?";
}

/// An optional boolean member.
absl::StatusOr<bool> Flag(const json& object, const char* name, absl::string_view where) {
  const json& value = Member(object, name);
  if (value.is_null()) return false;
  if (!value.is_boolean()) return Malformed(absl::StrCat(where, ".", name, " is not a boolean"));
  return value.get<bool>();
}

/// A literal pattern: {"String": "..."}, not empty.
absl::StatusOr<std::string> LiteralPattern(const json& owner, absl::string_view where) {
  const json& pattern = Member(owner, "pattern");
  if (!pattern.is_object() || !Member(pattern, "Regex").is_null()) {
    return Unsupported(absl::StrCat(where, " with a pattern that is no literal String"));
  }
  const json& literal = Member(pattern, "String");
  if (!literal.is_string() || literal.get_ref<const std::string&>().empty()) {
    return Malformed(absl::StrCat(where, ".pattern.String is missing or empty"));
  }
  return literal.get<std::string>();
}

absl::Status ReadModel(const json& model, TokenizerDefinition* definition) {
  if (!model.is_object()) return Malformed("model is missing");
  if (const std::string type = TypeOf(model); type != "BPE") {
    return Unsupported(absl::StrCat("model type \"", type, "\" (only BPE)"));
  }
  LTX_ASSIGN_OR_RETURN(const bool byte_fallback, Flag(model, "byte_fallback", "model"));
  if (!byte_fallback) return Unsupported("model.byte_fallback false");
  const json& dropout = Member(model, "dropout");
  if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0.0)) {
    return Unsupported("model.dropout");
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = Member(model, name);
    if (affix.is_null()) continue;
    if (!affix.is_string()) return Malformed(absl::StrCat("model.", name, " is not text"));
    if (!affix.get_ref<const std::string&>().empty()) {
      return Unsupported(absl::StrCat("model.", name));
    }
  }
  LTX_ASSIGN_OR_RETURN(definition->ignore_merges, Flag(model, "ignore_merges", "model"));
  LTX_ASSIGN_OR_RETURN(definition->fuse_unknown, Flag(model, "fuse_unk", "model"));
  const json& unknown = Member(model, "unk_token");
  if (!unknown.is_null()) {
    if (!unknown.is_string()) return Malformed("model.unk_token is not text");
    definition->unknown_token = unknown.get<std::string>();
    if (!definition->vocabulary.contains(definition->unknown_token)) {
      return Malformed(absl::StrCat("model.unk_token \"", definition->unknown_token,
                                    "\" is not in model.vocab"));
    }
  }
  return absl::OkStatus();
}

/// A literal replacement, as normalisers and decoders spell it.
absl::StatusOr<Replacement> ReadReplacement(const json& object, const char* where) {
  Replacement replacement;
  LTX_ASSIGN_OR_RETURN(replacement.pattern, LiteralPattern(object, where));
  const json& content = Member(object, "content");
  if (!content.is_string()) return Malformed(absl::StrCat(where, ".content is not text"));
  replacement.content = content.get<std::string>();
  return replacement;
}

absl::Status ReadNormalizer(const json& normalizer, TokenizerDefinition* definition) {
  if (normalizer.is_null()) return absl::OkStatus();
  const std::string type = TypeOf(normalizer);
  if (type == "Sequence") {
    const json& parts = Member(normalizer, "normalizers");
    if (!parts.is_array()) return Malformed("normalizer.normalizers is not a list");
    for (const json& part : parts) {
      LTX_RETURN_IF_ERROR(ReadNormalizer(part, definition));
    }
    return absl::OkStatus();
  }
  if (type != "Replace") return Unsupported(absl::StrCat("normalizer \"", type, "\""));
  LTX_ASSIGN_OR_RETURN(Replacement replacement, ReadReplacement(normalizer, "normalizer"));
  definition->normalizer.push_back(std::move(replacement));
  return absl::OkStatus();
}

absl::Status ReadDecoder(const json& decoder, DecoderDefinition* definition) {
  const std::string type = TypeOf(decoder);
  if (type == "Sequence") {
    const json& parts = Member(decoder, "decoders");
    if (!parts.is_array()) return Malformed("decoder.decoders is not a list");
    for (const json& part : parts) {
      LTX_RETURN_IF_ERROR(ReadDecoder(part, definition));
    }
    return absl::OkStatus();
  }
  if (type == "Replace" && !definition->byte_fallback) {
    LTX_ASSIGN_OR_RETURN(Replacement replacement, ReadReplacement(decoder, "decoder"));
    definition->replacements.push_back(std::move(replacement));
    return absl::OkStatus();
  }
  if (type == "ByteFallback") {
    definition->byte_fallback = true;
    return absl::OkStatus();
  }
  // Tokens are put together in any case.
  if (type == "Fuse") return absl::OkStatus();
  return Unsupported(absl::StrCat("decoder \"", type, "\""));
}

absl::Status ReadPreTokenizer(const json& pre_tokenizer, TokenizerDefinition* definition) {
  if (pre_tokenizer.is_null()) return absl::OkStatus();
  if (const std::string type = TypeOf(pre_tokenizer); type != "Split") {
    return Unsupported(absl::StrCat("pre_tokenizer \"", type, "\""));
  }
  const json& behavior = Member(pre_tokenizer, "behavior");
  if (behavior != "MergedWithPrevious") {
    return Unsupported(absl::StrCat("pre_tokenizer.behavior ", behavior.dump()));
  }
  LTX_ASSIGN_OR_RETURN(const bool invert, Flag(pre_tokenizer, "invert", "pre_tokenizer"));
  if (invert) return Unsupported("pre_tokenizer.invert true");
  LTX_ASSIGN_OR_RETURN(definition->split_after, LiteralPattern(pre_tokenizer, "pre_tokenizer"));
  return absl::OkStatus();
}

absl::StatusOr<int32_t> TokenId(const json& value, absl::string_view where) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    return Malformed(absl::StrCat(where, ": an id is not a whole number in range"));
  }
  return value.get<int32_t>();
}

absl::Status ReadAddedTokens(const json& tokens, TokenizerDefinition* definition) {
  if (tokens.is_null()) return absl::OkStatus();
  if (!tokens.is_array()) return Malformed("added_tokens is not a list");
  for (const json& token : tokens) {
    const json& content = Member(token, "content");
    if (!content.is_string()) return Malformed("added_tokens: an entry has no content");
    AddedToken added;
    added.content = content.get<std::string>();
    const std::string where = absl::StrCat("added_tokens \"", added.content, "\"");
    if (added.content.empty()) return Malformed("added_tokens: an entry is empty");
    LTX_ASSIGN_OR_RETURN(added.id, TokenId(Member(token, "id"), where));
    const auto known = definition->vocabulary.find(added.content);
    if (known != definition->vocabulary.end() && known->second != added.id) {
      return Malformed(absl::StrCat(where, " has id ", added.id, " here but ", known->second,
                                    " in model.vocab"));
    }
    for (const char* name : {"single_word", "lstrip", "rstrip"}) {
      LTX_ASSIGN_OR_RETURN(const bool flag, Flag(token, name, where));
      if (flag) return Unsupported(absl::StrCat(where, ".", name, " true"));
    }
    LTX_ASSIGN_OR_RETURN(added.normalized, Flag(token, "normalized", where));
    LTX_ASSIGN_OR_RETURN(added.special, Flag(token, "special", where));
    definition->added_tokens.push_back(std::move(added));
  }
  return absl::OkStatus();
}

/// Ids of one special token of a template.
absl::Status AppendTemplateToken(const json& processor, const json& piece,
                                 std::vector<int32_t>* ids) {
  const json& name = Member(piece, "id");
  if (!name.is_string()) return Malformed("post_processor.single: a special token has no id");
  const json& entry = Member(Member(processor, "special_tokens"), name.get<std::string>().c_str());
  const json& values = Member(entry, "ids");
  if (!values.is_array()) {
    return Malformed(absl::StrCat("post_processor.special_tokens lacks ", name.dump()));
  }
  for (const json& value : values) {
    LTX_ASSIGN_OR_RETURN(const int32_t id, TokenId(value, "post_processor.special_tokens"));
    ids->push_back(id);
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const json& processor, TokenizerDefinition* definition) {
  if (processor.is_null()) return absl::OkStatus();
  if (const std::string type = TypeOf(processor); type != "TemplateProcessing") {
    return Unsupported(absl::StrCat("post_processor \"", type, "\""));
  }
  const json& pieces = Member(processor, "single");
  if (!pieces.is_array()) return Malformed("post_processor.single is not a list");
  bool after_text = false;
  for (const json& piece : pieces) {
    if (const json& sequence = Member(piece, "Sequence"); !sequence.is_null()) {
      if (after_text || Member(sequence, "id") != "A") {
        return Unsupported("post_processor.single with other sequences than one A");
      }
      after_text = true;
    } else {
      LTX_RETURN_IF_ERROR(
          AppendTemplateToken(processor, Member(piece, "SpecialToken"),
                              after_text ? &definition->suffix_ids : &definition->prefix_ids));
    }
  }
  if (!after_text) return Malformed("post_processor.single has no sequence A");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerDefinition> ParseTokenizerJson(absl::string_view text) {
  TokenizerDefinition definition;
  json rest;
  TokenizerJsonReader reader(&definition, &rest);
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    return reader.status().ok() ? Malformed("not well-formed JSON") : reader.status();
  }
  if (!rest.is_object()) return Malformed("the outermost value is not an object");
  const json& model = Member(rest, "model");
  LTX_RETURN_IF_ERROR(ReadModel(model, &definition));
  if (!reader.saw_vocabulary()) return Malformed("model.vocab is missing");
  if (!reader.saw_merges()) return Malformed("model.merges is missing");
  LTX_RETURN_IF_ERROR(ReadNormalizer(Member(rest, "normalizer"), &definition));
  LTX_RETURN_IF_ERROR(ReadPreTokenizer(Member(rest, "pre_tokenizer"), &definition));
  LTX_RETURN_IF_ERROR(ReadAddedTokens(Member(rest, "added_tokens"), &definition));
  LTX_RETURN_IF_ERROR(ReadPostProcessor(Member(rest, "post_processor"), &definition));
  const absl::Status decoder = ReadDecoder(Member(rest, "decoder"), &definition.decoder);
  definition.decoder.unsupported = std::string(decoder.message());
  return definition;
}

}  // namespace ltx::text
