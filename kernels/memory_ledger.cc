#include "kernels/memory_ledger.h"

#include <algorithm>

namespace ltx {

absl::string_view MemoryOwnerName(MemoryOwner owner) {
  switch (owner) {
    case MemoryOwner::kWeightsText:
      return "weights/text";
    case MemoryOwner::kWeightsDit:
      return "weights/dit";
    case MemoryOwner::kWeightsVideoVae:
      return "weights/video_vae";
    case MemoryOwner::kWeightsAudioVae:
      return "weights/audio_vae";
    case MemoryOwner::kWeightsUpsampler:
      return "weights/upsampler";
    case MemoryOwner::kActivations:
      return "activations";
    case MemoryOwner::kWorkspace:
      return "workspace";
    case MemoryOwner::kCache:
      return "cache";
    case MemoryOwner::kMedia:
      return "media";
    case MemoryOwner::kRecordings:
      return "recordings";
  }
  return "?";
}

bool GoesWithRequest(MemoryOwner owner) {
  return owner == MemoryOwner::kActivations || owner == MemoryOwner::kWorkspace ||
         owner == MemoryOwner::kMedia;
}

namespace {

void Grow(MemoryLedger::Amounts* amounts, int64_t bytes) {
  amounts->live_bytes += bytes;
  amounts->peak_bytes = std::max(amounts->peak_bytes, amounts->live_bytes);
}

}  // namespace

void MemoryLedger::Add(MemoryOwner owner, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  Grow(&state_.total, bytes);
  Grow(&state_.by_owner[static_cast<int>(owner)], bytes);
  ++state_.live_allocations;
}

void MemoryLedger::Remove(MemoryOwner owner, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  state_.total.live_bytes -= bytes;
  state_.by_owner[static_cast<int>(owner)].live_bytes -= bytes;
  --state_.live_allocations;
}

MemoryLedger::Snapshot MemoryLedger::Read() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

void MemoryLedger::ResetPeaks() {
  absl::MutexLock lock(&mutex_);
  state_.total.peak_bytes = state_.total.live_bytes;
  for (Amounts& amounts : state_.by_owner) amounts.peak_bytes = amounts.live_bytes;
}

}  // namespace ltx
