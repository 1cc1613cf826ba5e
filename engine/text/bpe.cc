#include "engine/text/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/text/utf8.h"

namespace ltx::text {

absl::StatusOr<BpeModel> BpeModel::Create(TokenizerDefinition* definition) {
  BpeModel model;
  model.vocabulary_ = std::move(definition->vocabulary);
  model.fuse_unknown_ = definition->fuse_unknown;
  model.ignore_merges_ = definition->ignore_merges;
  if (!definition->unknown_token.empty()) {
    model.unknown_id_ = model.IdOf(definition->unknown_token);
  }
  for (const auto& [token, id] : model.vocabulary_) model.max_id_ = std::max(model.max_id_, id);
  for (int byte = 0; byte < 256; ++byte) {
    model.byte_ids_[byte] = model.IdOf(absl::StrFormat("<0x%02X>", byte));
  }
  model.merges_.reserve(definition->merges.size());
  int32_t rank = 0;
  for (const auto& [left, right] : definition->merges) {
    const std::string merged = absl::StrCat(left, right);
    const int32_t ids[] = {model.IdOf(left), model.IdOf(right), model.IdOf(merged)};
    if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0) {
      const std::string& missing = ids[0] < 0 ? left : ids[1] < 0 ? right : merged;
      return absl::InvalidArgumentError(absl::StrCat("tokenizer.json: model.merges: entry ", rank,
                                                     " needs \"", missing,
                                                     "\", which is not in model.vocab"));
    }
    // A pair that is listed twice has the later rank, as in the reference implementation.
    model.merges_[Pair(ids[0], ids[1])] = Merge{rank, ids[2]};
    ++rank;
  }
  std::vector<std::pair<std::string, std::string>>().swap(definition->merges);
  return model;
}

int32_t BpeModel::IdOf(absl::string_view token) const {
  const auto it = vocabulary_.find(token);
  return it == vocabulary_.end() ? -1 : it->second;
}

bool BpeModel::AppendBytes(absl::string_view code_point, std::vector<int32_t>* symbols) const {
  const auto id_of = [this](char byte) { return byte_ids_[static_cast<uint8_t>(byte)]; };
  const bool spellable =
      std::all_of(code_point.begin(), code_point.end(), [&](char b) { return id_of(b) >= 0; });
  if (!spellable) return false;
  for (const char byte : code_point) symbols->push_back(id_of(byte));
  return true;
}

std::vector<int32_t> BpeModel::InitialSymbols(absl::string_view word) const {
  std::vector<int32_t> symbols;
  symbols.reserve(word.size());
  // An unknown token waits until the next character of the vocabulary (bytes do not end the wait):
  // this is how the reference implementation orders and fuses them.
  bool unknown_waits = false;
  while (!word.empty()) {
    const absl::string_view code_point = word.substr(0, CodePointBytes(word[0]));
    word.remove_prefix(code_point.size());
    if (const int32_t id = IdOf(code_point); id >= 0) {
      if (unknown_waits) symbols.push_back(unknown_id_);
      unknown_waits = false;
      symbols.push_back(id);
    } else if (!AppendBytes(code_point, &symbols) && unknown_id_ >= 0) {
      if (unknown_waits && !fuse_unknown_) symbols.push_back(unknown_id_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) symbols.push_back(unknown_id_);
  return symbols;
}

void BpeModel::MergeSymbols(std::vector<int32_t>* symbols) const {
  struct Candidate {
    int32_t rank;
    int32_t position;
    int32_t merged_id;
    bool operator>(const Candidate& other) const {
      return std::make_pair(rank, position) > std::make_pair(other.rank, other.position);
    }
  };
  constexpr int32_t kGone = -1;
  std::vector<int32_t>& ids = *symbols;
  const auto count = static_cast<int32_t>(ids.size());
  // Neighbours of the symbols that are left; an absorbed symbol's id becomes kGone.
  std::vector<int32_t> next(count), previous(count);
  for (int32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>> queue;
  const auto consider = [&](int32_t position) {
    if (position < 0 || next[position] >= count) return;
    const auto merge = merges_.find(Pair(ids[position], ids[next[position]]));
    if (merge == merges_.end()) return;
    queue.push({merge->second.rank, position, merge->second.merged_id});
  };
  for (int32_t i = 0; i < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    const int32_t left = candidate.position;
    if (ids[left] == kGone || next[left] >= count) continue;
    const int32_t right = next[left];
    const auto merge = merges_.find(Pair(ids[left], ids[right]));
    // The pair may have changed since it was queued.
    if (merge == merges_.end() || merge->second.merged_id != candidate.merged_id) continue;
    ids[left] = candidate.merged_id;
    ids[right] = kGone;
    next[left] = next[right];
    if (next[right] < count) previous[next[right]] = left;
    consider(previous[left]);
    consider(left);
  }
  ids.erase(std::remove(ids.begin(), ids.end(), kGone), ids.end());
}

void BpeModel::Encode(absl::string_view word, std::vector<int32_t>* ids) const {
  if (ignore_merges_) {
    if (const int32_t whole = IdOf(word); whole >= 0) {
      ids->push_back(whole);
      return;
    }
  }
  std::vector<int32_t> symbols = InitialSymbols(word);
  MergeSymbols(&symbols);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
}

}  // namespace ltx::text
