#ifndef LTX_ENGINE_PIPELINE_FUSED_CACHE_H_
#define LTX_ENGINE_PIPELINE_FUSED_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/dit/transformer.h"
#include "engine/lora/lora_file.h"
#include "engine/pipeline/fused_transformer.h"
#include "kernels/device.h"

namespace ltx::pipeline {

/// Transformers with a set's distilled LoRA in them, one for each strength in use, kept between
/// jobs as far as memory allows: fusing reads the whole transformer again, tens of gigabytes at
/// full size. A kept copy gives the bits that a fresh one would.
///
/// Their weights are owned by kWeightsDit on the device's ledger. How many bytes may be kept is
/// said from outside (Keep) and may change at any unit, since only a plan of what runs next knows
/// what it needs. Driven by the device's thread, but for
/// stats() and copy_bytes().
class FusedCache {
 public:
  struct Stats {
    /// Stages that found their transformer, and transformers that were made.
    uint64_t hits = 0;
    uint64_t fusions = 0;
    /// Copies given up while nobody used them.
    uint64_t evictions = 0;
    int64_t entries = 0;
    int64_t bytes = 0;
    /// Of those, held by jobs.
    int64_t bytes_in_use = 0;
  };

  /// Nothing is kept until Keep() allows it. `device` must outlive the cache. INVALID_ARGUMENT
  /// naming the modules that the transformer lacks.
  static absl::StatusOr<std::unique_ptr<FusedCache>> Create(
      Device* device, const TransformerSource& source, std::shared_ptr<const lora::LoraFile> lora);

  /// For copies made from now on, see dit::Transformer::set_recording.
  void set_recording(bool on) { recording_ = on; }
  /// Bytes of one copy: worked out from shapes until there has been one, then measured. Any thread.
  int64_t copy_bytes() const;
  /// The LoRA's file name without folders.
  const std::string& lora_name() const { return lora_name_; }

  /// The transformer with the LoRA at `strength`: a kept one, or a new one in place of those that
  /// do not fit beside it. It is in use for as long as somebody holds it, which must not outlive
  /// the cache. Where the device is full, all copies that are not in use go before it fails with
  /// RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<const dit::Transformer>> Get(double strength);

  /// From now on at most `bytes` are kept beside what is in use, which counts: the least recently
  /// used copies go, those in use once they are released. Returns what went at once, e.g.
  /// "lora.safetensors at 0.25".
  std::vector<std::string> Keep(int64_t bytes);

  Stats stats() const;

 private:
  struct Entry {
    double strength = 0.0;
    int users = 0;
    std::unique_ptr<dit::Transformer> transformer;
  };
  FusedCache(Device* device, TransformerSource source, std::shared_ptr<const lora::LoraFile> lora,
             int64_t copy_bytes);

  absl::StatusOr<std::unique_ptr<dit::Transformer>> Make(double strength);
  std::shared_ptr<const dit::Transformer> Lend(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(Entry* entry);
  /// Drops copies that are not in use until `coming` more would fit; their names.
  std::vector<std::string> MakeRoom(int coming) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device* const device_;
  const TransformerSource source_;
  const std::shared_ptr<const lora::LoraFile> lora_;
  const std::string lora_name_;
  bool recording_ = true;
  mutable absl::Mutex mutex_;
  int64_t copy_bytes_ ABSL_GUARDED_BY(mutex_);
  int64_t keep_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  /// Most recently used first.
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_FUSED_CACHE_H_
