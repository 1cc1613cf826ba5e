#ifndef LTX_ENGINE_CHECKPOINT_CONFIG_READER_H_
#define LTX_ENGINE_CHECKPOINT_CONFIG_READER_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {

/// Reads the keys of one JSON object of unknown origin, absent ones as their default. The first
/// error is kept and later calls give defaults, so that a parser reads all its keys in a row and
/// asks for status() once. Readers of nested objects share that error. Messages name the key with
/// its path ("config.vae.patch_size"), its value and what is legal.
class ConfigReader {
 public:
  /// `object` must outlive the reader. `path` names it in messages, e.g. "config.vae".
  ConfigReader(const nlohmann::json& object, absl::string_view path);

  const absl::Status& status() const { return *status_; }

  bool Has(const char* key) const;
  /// Has() and not null.
  bool HasValue(const char* key) const;
  /// The value itself, or nullptr.
  const nlohmann::json* Find(const char* key) const;

  /// A nested object; an absent one reads as empty.
  ConfigReader Object(const char* key);

  /// An integer in [low, high]; a float without fraction counts as one.
  int64_t Int(const char* key, int64_t fallback, int64_t low, int64_t high);
  /// A finite number in [low, high].
  double Number(const char* key, double fallback, double low, double high);
  bool Bool(const char* key, bool fallback);
  std::string String(const char* key, absl::string_view fallback);
  /// Between min_size and max_size integers in [low, high].
  std::vector<int64_t> Ints(const char* key, std::vector<int64_t> fallback, size_t min_size,
                            size_t max_size, int64_t low, int64_t high);

  /// One of a few words.
  template <typename Enum>
  Enum OneOf(const char* key, Enum fallback,
             std::initializer_list<std::pair<absl::string_view, Enum>> words) {
    if (!Has(key) || !status_->ok()) return fallback;
    const nlohmann::json& value = *Find(key);
    std::string legal;
    for (const auto& [word, meaning] : words) {
      if (value.is_string() && value.get_ref<const std::string&>() == word) return meaning;
      absl::StrAppend(&legal, legal.empty() ? "\"" : ", \"", word, "\"");
    }
    FailValue(key, legal);
    return fallback;
  }

  /// Records INVALID_ARGUMENT if `key` is absent (or null).
  void Require(const char* key);
  /// Records INVALID_ARGUMENT unless `key` is there and equal to `expected`; a null is also met by
  /// an absent key.
  void RequireEqual(const char* key, const nlohmann::json& expected);
  /// Records INVALID_ARGUMENT: "path.key is VALUE, legal is LEGAL".
  void FailValue(const char* key, absl::string_view legal);
  /// Records INVALID_ARGUMENT with "path: MESSAGE".
  void Fail(absl::string_view message);
  /// Records UNIMPLEMENTED: "path.key is VALUE, which is not supported; supported: SUPPORTED".
  void Unsupported(const char* key, absl::string_view supported);

 private:
  ConfigReader(const nlohmann::json& object, std::string path,
               std::shared_ptr<absl::Status> status);
  void Record(absl::Status status);

  const nlohmann::json* object_;
  std::string path_;
  std::shared_ptr<absl::Status> status_;
};

/// A JSON value for a message: on one line, cut if it is long.
std::string ShowValue(const nlohmann::json& value);

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_CONFIG_READER_H_
