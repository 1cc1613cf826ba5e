#include "engine/checkpoint/weight_set.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ltx::checkpoint {

absl::Status WeightSet::Add(const std::shared_ptr<const SafetensorsFile>& file,
                            absl::string_view keep_prefix) {
  if (first_path_.empty()) first_path_ = file->path();
  // Names with a common prefix are neighbours in the sorted map.
  for (auto it = file->entries().lower_bound(keep_prefix);
       it != file->entries().end() && absl::StartsWith(it->first, keep_prefix); ++it) {
    const std::string name = it->first.substr(keep_prefix.size());
    const auto [existing, inserted] = items_.try_emplace(name, Item{file, &it->second});
    if (!inserted) {
      return absl::InvalidArgumentError(absl::StrCat(
          file->path(), ": tensor \"", it->first, "\" is also in ", existing->second.file->path()));
    }
  }
  return absl::OkStatus();
}

const SafetensorsFile::Entry* WeightSet::Find(absl::string_view name) const {
  const auto it = items_.find(name);
  return it == items_.end() ? nullptr : it->second.entry;
}

std::vector<std::string> WeightSet::Names() const {
  std::vector<std::string> names;
  names.reserve(items_.size());
  for (const auto& [name, item] : items_) names.push_back(name);
  return names;
}

std::string WeightSet::PathOf(absl::string_view name) const {
  const auto it = items_.find(name);
  return it == items_.end() ? first_path_ : it->second.file->path();
}

}  // namespace ltx::checkpoint
