#include "engine/text/literal_matcher.h"

namespace ltx::text {

void LiteralMatcher::Add(absl::string_view literal, int32_t id) {
  if (literal.empty()) return;
  uint32_t node = 0;
  for (const char byte : literal) {
    const auto [edge, inserted] =
        edges_.try_emplace(Edge(node, byte), static_cast<uint32_t>(ids_.size()));
    if (inserted) ids_.push_back(-1);
    node = edge->second;
  }
  if (ids_[node] < 0) ids_[node] = id;
}

std::optional<LiteralMatcher::Match> LiteralMatcher::Find(absl::string_view text,
                                                          size_t from) const {
  if (empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t end = begin; end < text.size(); ++end) {
      const auto edge = edges_.find(Edge(node, text[end]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ids_[node] >= 0) longest = Match{begin, end + 1, ids_[node]};
    }
    if (longest.has_value()) return longest;
  }
  return std::nullopt;
}

}  // namespace ltx::text
