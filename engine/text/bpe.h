#ifndef LTX_ENGINE_TEXT_BPE_H_
#define LTX_ENGINE_TEXT_BPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/text/tokenizer_json.h"

namespace ltx::text {

/// Byte-pair encoding with byte fallback: a word starts as its code points (those outside of the
/// vocabulary as their bytes, spelled <0xNN>), then the pair with the lowest rank is merged, the
/// leftmost among equals, until no pair has a rank.
class BpeModel {
 public:
  /// Takes vocabulary and merges out of `definition`. INVALID_ARGUMENT if a merge names a token
  /// that is not in the vocabulary.
  static absl::StatusOr<BpeModel> Create(TokenizerDefinition* definition);

  /// Appends the ids of `word` (well-formed UTF-8) to `ids`. O(n log n).
  void Encode(absl::string_view word, std::vector<int32_t>* ids) const;

  /// The id of a whole token, or -1.
  int32_t IdOf(absl::string_view token) const;
  /// All tokens with their ids.
  const absl::flat_hash_map<std::string, int32_t>& vocabulary() const { return vocabulary_; }
  /// The largest id of the vocabulary, or -1.
  int32_t max_id() const { return max_id_; }

 private:
  struct Merge {
    int32_t rank;
    int32_t merged_id;
  };

  BpeModel() = default;
  static uint64_t Pair(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  std::vector<int32_t> InitialSymbols(absl::string_view word) const;
  bool AppendBytes(absl::string_view code_point, std::vector<int32_t>* symbols) const;
  void MergeSymbols(std::vector<int32_t>* symbols) const;

  absl::flat_hash_map<std::string, int32_t> vocabulary_;
  absl::flat_hash_map<uint64_t, Merge> merges_;
  /// Id of <0xNN>, or -1.
  std::array<int32_t, 256> byte_ids_{};
  int32_t unknown_id_ = -1;
  int32_t max_id_ = -1;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_BPE_H_
