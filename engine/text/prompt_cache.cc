#include "engine/text/prompt_cache.h"

#include <algorithm>
#include <utility>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

int64_t BytesOf(const PromptContexts& contexts) {
  int64_t bytes = 0;
  for (const Tensor* const tensor : {&contexts.video, &contexts.audio}) {
    if (tensor->defined()) bytes += tensor->num_bytes();
  }
  return bytes;
}

}  // namespace

absl::StatusOr<PromptContexts> PromptCache::Get(absl::string_view prompt, const Encode& encode) {
  if (budget_bytes_ <= 0) return encode(prompt);
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [prompt](const Entry& entry) {
      return entry.prompt == prompt;
    });
    if (found != entries_.end()) {
      ++stats_.hits;
      entries_.splice(entries_.begin(), entries_, found);
      return found->contexts;
    }
    ++stats_.misses;
  }
  LTX_ASSIGN_OR_RETURN(PromptContexts made, encode(prompt));
  const int64_t bytes = BytesOf(made);
  if (bytes > budget_bytes_) return made;
  {
    // Before the copy, so that the budget bounds what is live at any time.
    absl::MutexLock lock(&mutex_);
    MakeRoom(bytes);
  }
  absl::StatusOr<PromptContexts> owned = Own(made);
  // A full device is no reason to fail a job whose contexts are there.
  if (absl::IsResourceExhausted(owned.status())) return made;
  LTX_RETURN_IF_ERROR(owned.status());
  absl::MutexLock lock(&mutex_);
  Insert(prompt, *owned, bytes);
  return owned;
}

absl::StatusOr<PromptContexts> PromptCache::Own(const PromptContexts& contexts) const {
  PromptContexts owned = contexts;
  for (Tensor* const tensor : {&owned.video, &owned.audio}) {
    if (!tensor->defined()) continue;
    LTX_ASSIGN_OR_RETURN(*tensor, CopyForOwner(*device_, *tensor, MemoryOwner::kCache));
  }
  return owned;
}

void PromptCache::Insert(absl::string_view prompt, const PromptContexts& contexts, int64_t bytes) {
  entries_.push_front({std::string(prompt), contexts, bytes});
  stats_.bytes += bytes;
  ++stats_.entries;
}

void PromptCache::MakeRoom(int64_t bytes) {
  while (!entries_.empty() && stats_.bytes + bytes > budget_bytes_) {
    const Entry& oldest = entries_.back();
    stats_.bytes -= oldest.bytes;
    --stats_.entries;
    entries_.pop_back();
  }
}

void PromptCache::Clear() {
  absl::MutexLock lock(&mutex_);
  entries_.clear();
  stats_.bytes = 0;
  stats_.entries = 0;
}

PromptCache::Stats PromptCache::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace ltx::text
