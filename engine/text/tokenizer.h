#ifndef LTX_ENGINE_TEXT_TOKENIZER_H_
#define LTX_ENGINE_TEXT_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/text/bpe.h"
#include "engine/text/literal_matcher.h"
#include "engine/text/tokenizer_json.h"

namespace ltx::text {

/// The ids of one prompt, without padding. There is always at least the begin token.
struct TokenizedPrompt {
  std::vector<int32_t> ids;
  /// Tokens at the end of the prompt that did not fit.
  int64_t dropped_tokens = 0;
};

/// A prompt as the text tower's full row: padding first.
struct PaddedPrompt {
  std::vector<int32_t> ids;
  /// 0 on padding, 1 on tokens.
  std::vector<int32_t> mask;
};

struct TokenizerLimits {
  /// Row length of the text tower: 1024 in every published model, not configurable there.
  int64_t max_tokens = 1024;
  /// Prompts above this are refused before any work. 64 KiB is about sixteen times what fits into
  /// 1024 tokens of ordinary text.
  int64_t max_bytes = 64 * 1024;
};

/// Prompt text to token ids, for both Gemma families, exactly as the Hugging Face tokenizer built
/// from the same two files. Immutable after creation, so usable from several threads.
class Tokenizer {
 public:
  /// `tokenizer_json` and `tokenizer_config_json` are the contents of the files of that name.
  /// INVALID_ARGUMENT for malformed files or a missing bos_token, UNIMPLEMENTED naming the feature
  /// for a tokenizer of another kind.
  static absl::StatusOr<Tokenizer> Create(absl::string_view tokenizer_json,
                                          absl::string_view tokenizer_config_json,
                                          const TokenizerLimits& limits = {});

  /// Trims white space, encodes, cuts on the right to max_tokens and makes sure that the begin
  /// token stands in front. INVALID_ARGUMENT for text that is not UTF-8 or too long.
  absl::StatusOr<TokenizedPrompt> Tokenize(absl::string_view prompt) const;

  /// The ids of a text as it stands: neither trimmed nor cut, begin and end tokens as the files add
  /// them. INVALID_ARGUMENT for text that is not UTF-8 or too long.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;

  /// The id of a token, typed or not, or -1.
  int32_t IdOf(absl::string_view token) const;

  /// `prompt` as a row of max_tokens with the padding on the left.
  PaddedPrompt PadLeft(const TokenizedPrompt& prompt) const;

  const TokenizerLimits& limits() const { return limits_; }
  /// How the begin token is typed, and its id.
  const std::string& begin_token() const { return begin_token_; }
  int32_t begin_id() const { return begin_id_; }
  int32_t pad_id() const { return pad_id_; }
  /// The largest id that Tokenize can return: the tower's embedding table must have a row for it.
  int32_t max_id() const { return max_id_; }

  /// For turning ids back into text: all tokens, of which added ones win, and how to join them.
  const BpeModel& model() const { return model_; }
  const std::vector<AddedToken>& added_tokens() const { return added_tokens_; }
  const DecoderDefinition& decoder() const { return decoder_; }

 private:
  Tokenizer(BpeModel model, const TokenizerLimits& limits)
      : model_(std::move(model)), limits_(limits) {}

  absl::Status ReadConfig(absl::string_view config_json);
  absl::Status CheckText(absl::string_view text) const;
  std::string Normalize(absl::string_view text) const;
  void EncodeRaw(absl::string_view text, std::vector<int32_t>* ids) const;
  void EncodeNormalized(absl::string_view text, std::vector<int32_t>* ids) const;
  void EncodeWords(absl::string_view text, std::vector<int32_t>* ids) const;

  BpeModel model_;
  TokenizerLimits limits_;
  absl::flat_hash_map<std::string, int32_t> added_ids_;
  std::vector<AddedToken> added_tokens_;
  DecoderDefinition decoder_;
  LiteralMatcher raw_tokens_;
  LiteralMatcher normalized_tokens_;
  std::vector<Replacement> normalizer_;
  std::string split_after_;
  std::vector<int32_t> prefix_ids_;
  std::vector<int32_t> suffix_ids_;
  std::string begin_token_;
  int32_t begin_id_ = -1;
  int32_t pad_id_ = -1;
  int32_t max_id_ = -1;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_TOKENIZER_H_
