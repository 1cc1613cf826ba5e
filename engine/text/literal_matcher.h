#ifndef LTX_ENGINE_TEXT_LITERAL_MATCHER_H_
#define LTX_ENGINE_TEXT_LITERAL_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace ltx::text {

/// A set of literal texts, each with an id, found in running text: leftmost first, then longest.
/// A byte trie, so a search costs at most the text's length times the longest literal, however
/// many literals share a beginning.
class LiteralMatcher {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    int32_t id = 0;
  };

  /// A literal that is there already keeps its first id; an empty one is ignored.
  void Add(absl::string_view literal, int32_t id);
  bool empty() const { return edges_.empty(); }

  /// The first match at or after `from`.
  std::optional<Match> Find(absl::string_view text, size_t from) const;

 private:
  static uint64_t Edge(uint32_t node, char byte) {
    return (static_cast<uint64_t>(node) << 8) | static_cast<uint8_t>(byte);
  }

  /// (node, byte) -> node; node 0 is the root.
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  /// Per node, the id of the literal that ends there, or -1.
  std::vector<int32_t> ids_ = {-1};
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_LITERAL_MATCHER_H_
