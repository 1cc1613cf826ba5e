#ifndef LTX_ENGINE_TEXT_DETOKENIZER_H_
#define LTX_ENGINE_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/text/tokenizer.h"

namespace ltx::text {

/// Token ids back to text, as the Hugging Face tokenizer of the same files decodes them when told
/// to skip special tokens. Immutable.
class Detokenizer {
 public:
  /// Copies every token's text. UNIMPLEMENTED naming the decoder that does not exist here.
  static absl::StatusOr<Detokenizer> Create(const Tokenizer& tokenizer);

  /// Always well-formed UTF-8: bytes that spell no character become U+FFFD, one each. Ids without a
  /// token are left out.
  std::string Decode(absl::Span<const int32_t> ids) const;

 private:
  Detokenizer(std::vector<std::string> tokens, bool byte_fallback)
      : tokens_(std::move(tokens)), byte_fallback_(byte_fallback) {}

  /// By id, replacements done; empty for special tokens and ids without one.
  std::vector<std::string> tokens_;
  bool byte_fallback_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_DETOKENIZER_H_
