#ifndef LTX_ENGINE_TEXT_TOKENIZER_JSON_H_
#define LTX_ENGINE_TEXT_TOKENIZER_JSON_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::text {

/// One entry of `added_tokens`. Its text is cut out before merging, whatever stands around it.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  /// True: looked for after the normaliser ran (and its own content is normalised), false: before.
  bool normalized = false;
  bool special = false;
};

/// A literal replacement of the normaliser: every `pattern` becomes `content`.
struct Replacement {
  std::string pattern;
  std::string content;
};

/// How token texts become text again.
struct DecoderDefinition {
  /// Applied to each token's text, one after the other.
  std::vector<Replacement> replacements;
  /// Tokens spelled <0xNN> are bytes.
  bool byte_fallback = false;
  /// What decoding would need and does not exist here; empty: nothing. Encoding goes without.
  std::string unsupported;
};

/// What a Hugging Face `tokenizer.json` says, as far as encoding and decoding depend on it. Only
/// byte-pair encoding with byte fallback exists here; whatever else a file asks for is refused by
/// ParseTokenizerJson.
struct TokenizerDefinition {
  absl::flat_hash_map<std::string, int32_t> vocabulary;
  /// In order of rank, lowest (applied first) in front.
  std::vector<std::pair<std::string, std::string>> merges;
  /// Empty: characters that are neither in the vocabulary nor spellable in bytes are dropped.
  std::string unknown_token;
  /// Adjacent unknown characters become one unknown token.
  bool fuse_unknown = false;
  /// A piece that is itself in the vocabulary is taken whole, without merging.
  bool ignore_merges = false;
  std::vector<AddedToken> added_tokens;
  /// Applied one after the other.
  std::vector<Replacement> normalizer;
  /// Words end after each occurrence of this text; empty: there is no pre-tokenizer.
  std::string split_after;
  /// Ids that the post-processor puts in front of and behind the text.
  std::vector<int32_t> prefix_ids;
  std::vector<int32_t> suffix_ids;
  DecoderDefinition decoder;
};

/// Reads `json` event by event: a real file has half a million merges, too many for a document
/// tree. INVALID_ARGUMENT for what is not JSON or contradicts itself, UNIMPLEMENTED naming the
/// feature for a tokenizer of another kind.
absl::StatusOr<TokenizerDefinition> ParseTokenizerJson(absl::string_view json);

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_TOKENIZER_JSON_H_
