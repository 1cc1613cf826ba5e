#include "server/auth/token_table.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/media/sha256.h"
#include "server/tenant.h"

namespace ltx::server {
namespace {

/// 16 random characters of base64 are 96 bits: out of reach of guessing over a network.
constexpr size_t kMinTokenBytes = 16;

absl::Status BadLine(int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text) {
  TokenTable table;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != 2) return BadLine(number, "not a tenant and a token");
    if (!ParseTenant(words[0]).ok()) {
      return BadLine(number, absl::StrCat("tenant \"", words[0],
                                          "\" is not up to 64 letters, digits and \"._-\""));
    }
    if (words[1].size() < kMinTokenBytes) {
      return BadLine(number, absl::StrCat("the token has ", words[1].size(),
                                          " characters; it needs ", kMinTokenBytes));
    }
    if (!std::all_of(words[1].begin(), words[1].end(), absl::ascii_isgraph)) {
      return BadLine(number, "the token has characters that are not printable ASCII");
    }
    Entry entry = {media::Sha256Of(words[1]), std::string(words[0])};
    for (const Entry& other : table.entries_) {
      if (other.digest == entry.digest) return BadLine(number, "the token stands there twice");
    }
    table.entries_.push_back(std::move(entry));
  }
  if (table.entries_.empty()) return absl::InvalidArgumentError("there is no token in it");
  return table;
}

std::optional<std::string> TokenTable::Find(absl::string_view token) const {
  const std::string digest = media::Sha256Of(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    // No early exit.
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->tenant;
}

}  // namespace ltx::server
