#ifndef LTX_SERVER_AUTH_TOKEN_TABLE_H_
#define LTX_SERVER_AUTH_TOKEN_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::server {

/// Bearer tokens and whose they are. Holds digests only, so that no memory dump shows a token.
class TokenTable {
 public:
  /// One line a token: the tenant, white space, the token; empty lines and lines that start with #
  /// do not count. A tenant may have several tokens, so that they can be exchanged one by one.
  /// INVALID_ARGUMENT naming the line (never the token) for a tenant name that is not legal, a
  /// token that is shorter than 16 characters or not printable, one that stands there twice, and a
  /// file without any.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  /// The tenant of `token`. Takes the same time whichever tokens there are and however much of one
  /// is right: digests are compared, all of them, in constant time.
  std::optional<std::string> Find(absl::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string digest;
    std::string tenant;
  };
  std::vector<Entry> entries_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_AUTH_TOKEN_TABLE_H_
