#ifndef LTX_ENGINE_TEXT_UNICODE_TRIM_H_
#define LTX_ENGINE_TEXT_UNICODE_TRIM_H_

#include "absl/strings/string_view.h"

namespace ltx::text {

/// `text` without white space at both ends. White space is what Python's str.strip() removes: the
/// bidirectional types WS, B and S plus the space separators, 29 code points in all. Zero-width
/// marks (U+200B, U+FEFF) are not among them. `text` must be well-formed UTF-8.
absl::string_view TrimUnicodeWhitespace(absl::string_view text);

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_UNICODE_TRIM_H_
