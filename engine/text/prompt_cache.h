#ifndef LTX_ENGINE_TEXT_PROMPT_CACHE_H_
#define LTX_ENGINE_TEXT_PROMPT_CACHE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/text/prompt_encoder.h"
#include "kernels/device.h"

namespace ltx::text {

/// Contexts of the prompts seen last, so that an equal prompt does not run the language model
/// again. What it hands out has the same bytes as what the encoder made. One cache belongs to one
/// loaded model in one dtype: its key is the text alone.
///
/// Kept contexts are owned by kCache on the device's ledger, within a byte budget; the least
/// recently used go first. Get() and Clear() belong to the device's thread, stats() to any.
class PromptCache {
 public:
  using Encode = std::function<absl::StatusOr<PromptContexts>(absl::string_view prompt)>;

  struct Stats {
    uint64_t hits = 0;
    uint64_t misses = 0;
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  /// `device` must outlive the cache. A budget of 0 keeps and counts nothing.
  PromptCache(Device* device, int64_t budget_bytes)
      : device_(device), budget_bytes_(budget_bytes) {}

  /// The contexts of `prompt`: kept ones, or those that `encode` makes, which are kept if they fit
  /// into the budget and onto the device. Errors are those of `encode`.
  absl::StatusOr<PromptContexts> Get(absl::string_view prompt, const Encode& encode);

  /// Gives the memory back; contexts that jobs hold stay alive.
  void Clear();

  Stats stats() const;

 private:
  struct Entry {
    std::string prompt;
    PromptContexts contexts;
    int64_t bytes = 0;
  };
  /// Copies `contexts` under the cache's ownership. RESOURCE_EXHAUSTED if the device is full.
  absl::StatusOr<PromptContexts> Own(const PromptContexts& contexts) const;
  void Insert(absl::string_view prompt, const PromptContexts& contexts, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device* const device_;
  const int64_t budget_bytes_;
  mutable absl::Mutex mutex_;
  /// Most recently used first. A budget holds tens to hundreds of prompts, so a scan is as good as
  /// an index.
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_PROMPT_CACHE_H_
