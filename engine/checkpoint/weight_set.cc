#include "engine/checkpoint/weight_set.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ltx::checkpoint {
namespace {

/// The bytes of one tensor of a file.
class EntrySource final : public ByteSource {
 public:
  EntrySource(std::shared_ptr<const SafetensorsFile> file, const SafetensorsFile::Entry* entry)
      : file_(std::move(file)), entry_(entry) {}

  int64_t size() const override { return static_cast<int64_t>(entry_->bytes.size()); }
  absl::Status Read(int64_t begin, absl::Span<uint8_t> to) const override {
    return file_->Read(*entry_, begin, to);
  }

 private:
  const std::shared_ptr<const SafetensorsFile> file_;
  const SafetensorsFile::Entry* const entry_;
};

}  // namespace

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

std::shared_ptr<const ByteSource> WeightSet::SourceOf(absl::string_view name) const {
  const auto it = items_.find(name);
  if (it == items_.end()) return nullptr;
  return std::make_shared<EntrySource>(it->second.file, it->second.entry);
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
