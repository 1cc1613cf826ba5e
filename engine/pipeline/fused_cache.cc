#include "engine/pipeline/fused_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

// Requests may name any strength, but a job uses at most one a stage, and recipes have two: more
// copies would only serve to fill a large device with strengths that come once.
constexpr int kMostCopies = 2;

int64_t DitBytes(Device& device) {
  return device.ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWeightsDit)].live_bytes;
}

}  // namespace

FusedCache::FusedCache(Device* device, TransformerSource source,
                       std::shared_ptr<const lora::LoraFile> lora, int64_t copy_bytes)
    : device_(device),
      source_(std::move(source)),
      lora_(std::move(lora)),
      lora_name_(lora_->path().substr(lora_->path().rfind('/') + 1)),
      copy_bytes_(copy_bytes) {}

absl::StatusOr<std::unique_ptr<FusedCache>> FusedCache::Create(
    Device* device, const TransformerSource& source, std::shared_ptr<const lora::LoraFile> lora) {
  LTX_ASSIGN_OR_RETURN(const int64_t copy_bytes, FusedTransformerBytes(*device, source, lora));
  return std::unique_ptr<FusedCache>(new FusedCache(device, source, std::move(lora), copy_bytes));
}

absl::StatusOr<std::shared_ptr<const dit::Transformer>> FusedCache::Get(double strength) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(entries_.begin(), entries_.end(),
                     [strength](const Entry& entry) { return entry.strength == strength; });
    if (found != entries_.end()) {
      ++stats_.hits;
      entries_.splice(entries_.begin(), entries_, found);
      return Lend(&entries_.front());
    }
    ++stats_.fusions;
    MakeRoom(1);
  }
  absl::StatusOr<std::unique_ptr<dit::Transformer>> made = Make(strength);
  if (absl::IsResourceExhausted(made.status()) && !Keep(0).empty()) made = Make(strength);
  LTX_RETURN_IF_ERROR(made.status());
  absl::MutexLock lock(&mutex_);
  entries_.push_front({strength, 0, *std::move(made)});
  return Lend(&entries_.front());
}

absl::StatusOr<std::unique_ptr<dit::Transformer>> FusedCache::Make(double strength) {
  const int64_t before = DitBytes(*device_);
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<dit::Transformer> made,
                       LoadFusedTransformer(device_, source_, lora_, strength));
  made->set_recording(recording_);
  const int64_t after = DitBytes(*device_);
  absl::MutexLock lock(&mutex_);
  copy_bytes_ = after - before;
  return made;
}

std::shared_ptr<const dit::Transformer> FusedCache::Lend(Entry* entry) {
  ++entry->users;
  return {entry->transformer.get(), [this, entry](const dit::Transformer*) { Release(entry); }};
}

void FusedCache::Release(Entry* entry) {
  absl::MutexLock lock(&mutex_);
  --entry->users;
  MakeRoom(0);
}

std::vector<std::string> FusedCache::Keep(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  keep_bytes_ = bytes;
  return MakeRoom(0);
}

std::vector<std::string> FusedCache::MakeRoom(int coming) {
  const int64_t most =
      std::min<int64_t>(kMostCopies, keep_bytes_ / std::max<int64_t>(copy_bytes_, 1));
  std::vector<std::string> gone;
  auto entry = entries_.end();
  while (entry != entries_.begin() && static_cast<int64_t>(entries_.size()) + coming > most) {
    --entry;
    if (entry->users > 0) continue;
    gone.push_back(absl::StrCat(lora_name_, " at ", entry->strength));
    entry = entries_.erase(entry);
    ++stats_.evictions;
  }
  return gone;
}

int64_t FusedCache::copy_bytes() const {
  absl::MutexLock lock(&mutex_);
  return copy_bytes_;
}

FusedCache::Stats FusedCache::stats() const {
  absl::MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.entries = static_cast<int64_t>(entries_.size());
  stats.bytes = stats.entries * copy_bytes_;
  stats.bytes_in_use =
      copy_bytes_ * std::count_if(entries_.begin(), entries_.end(),
                                  [](const Entry& entry) { return entry.users > 0; });
  return stats;
}

}  // namespace ltx::pipeline
