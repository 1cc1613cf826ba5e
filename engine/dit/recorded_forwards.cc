#include "engine/dit/recorded_forwards.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// A request has at most two stages with one pattern of guidance each, and batches of requests of
/// one rung repeat them.
constexpr size_t kMaxEntries = 4;

/// What stands for a layout in a key: the one object, or any that is equal.
using LayoutId = uint64_t (*)(const PreparedStream& layout);

uint64_t AddressOf(const PreparedStream& layout) { return reinterpret_cast<uintptr_t>(&layout); }
uint64_t FingerprintOf(const PreparedStream& layout) { return layout.fingerprint; }

void AppendKey(const StreamInputs* inputs, LayoutId id, std::string* key) {
  if (inputs == nullptr) {
    absl::StrAppend(key, "absent;");
    return;
  }
  absl::StrAppend(key, id(*inputs->prepared), inputs->enabled);
  for (const Tensor* tensor : inputs->Tensors()) {
    absl::StrAppend(key, ",", tensor->defined() ? tensor->shape().ToString() : "-");
  }
  for (const int32_t row : inputs->context_rows) absl::StrAppend(key, ".", row);
  absl::StrAppend(key, ";");
}

std::string KeyOf(const StreamInputs* video, const StreamInputs* audio,
                  const BatchPerturbations& perturbations, LayoutId id) {
  std::string key;
  AppendKey(video, id, &key);
  AppendKey(audio, id, &key);
  for (const std::vector<Perturbation>& sample : perturbations) {
    absl::StrAppend(&key, "/");
    for (const Perturbation& perturbation : sample) {
      absl::StrAppend(&key, " ", static_cast<int>(perturbation.kind), ":");
      if (!perturbation.blocks.has_value()) absl::StrAppend(&key, "all");
      for (const int64_t block : perturbation.blocks.value_or(std::vector<int64_t>())) {
        absl::StrAppend(&key, block, ",");
      }
    }
  }
  return key;
}

/// Inputs of the same values in memory of their own.
absl::StatusOr<std::optional<StreamInputs>> OwnInputs(Device& device, const StreamInputs* inputs) {
  if (inputs == nullptr) return std::nullopt;
  StreamInputs own = *inputs;
  for (Tensor* tensor : own.Tensors()) {
    if (!tensor->defined()) continue;
    LTX_ASSIGN_OR_RETURN(*tensor, CopyForOwner(device, *tensor, MemoryOwner::kRecordings));
  }
  return own;
}

absl::Status CopyInputs(Device& device, const StreamInputs* from, std::optional<StreamInputs>* to) {
  if (from == nullptr) return absl::OkStatus();
  const auto sources = from->Tensors();
  const auto targets = (*to)->Tensors();
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->defined()) LTX_RETURN_IF_ERROR(device.Copy(*sources[i], targets[i]));
  }
  return absl::OkStatus();
}

const StreamInputs* PointerTo(const std::optional<StreamInputs>& inputs) {
  return inputs.has_value() ? &*inputs : nullptr;
}

}  // namespace

void RecordedForwards::Clear() {
  entries_.clear();
  Publish();
}

bool RecordedForwards::IsAssumed(const std::string& kind) const {
  return std::find(assumed_.begin(), assumed_.end(), kind) != assumed_.end();
}

std::vector<std::string> RecordedForwards::Recorded() const {
  absl::MutexLock lock(&mutex_);
  return published_;
}

void RecordedForwards::Publish() {
  std::vector<std::string> kinds;
  for (const Entry& entry : entries_) {
    if (entry.recording != nullptr) kinds.push_back(entry.kind);
  }
  absl::MutexLock lock(&mutex_);
  published_ = std::move(kinds);
}

absl::StatusOr<StreamPair> RecordedForwards::Run(Device& device, const StreamInputs* video,
                                                 const StreamInputs* audio,
                                                 const BatchPerturbations& perturbations,
                                                 Evaluate evaluate) {
  std::string key = KeyOf(video, audio, perturbations, AddressOf);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) {
    LTX_ASSIGN_OR_RETURN(StreamPair results, evaluate(video, audio));
    Entry entry;
    entry.key = std::move(key);
    entry.kind = KeyOf(video, audio, perturbations, FingerprintOf);
    if (!IsAssumed(entry.kind)) prepared_.issued += 1;
    if (video != nullptr) entry.video_layout = video->prepared;
    if (audio != nullptr) entry.audio_layout = audio->prepared;
    entries_.push_front(std::move(entry));
    if (entries_.size() > kMaxEntries) {
      entries_.pop_back();
      Publish();
    }
    return results;
  }
  entries_.splice(entries_.begin(), entries_, found);
  Entry& entry = entries_.front();
  if (entry.recording == nullptr) {
    LTX_ASSIGN_OR_RETURN(entry.video, OwnInputs(device, video));
    LTX_ASSIGN_OR_RETURN(entry.audio, OwnInputs(device, audio));
    LTX_ASSIGN_OR_RETURN(entry.recording, device.Record([&]() -> absl::Status {
      LTX_ASSIGN_OR_RETURN(entry.results, evaluate(PointerTo(entry.video), PointerTo(entry.audio)));
      return absl::OkStatus();
    }));
    if (!IsAssumed(entry.kind)) prepared_.recorded += 1;
    Publish();
  } else {
    LTX_RETURN_IF_ERROR(CopyInputs(device, video, &entry.video));
    LTX_RETURN_IF_ERROR(CopyInputs(device, audio, &entry.audio));
  }
  LTX_RETURN_IF_ERROR(device.Replay(*entry.recording));
  StreamPair results;
  if (video != nullptr) {
    LTX_ASSIGN_OR_RETURN(results.video,
                         CopyForOwner(device, entry.results.video, MemoryOwner::kActivations));
  }
  if (audio != nullptr) {
    LTX_ASSIGN_OR_RETURN(results.audio,
                         CopyForOwner(device, entry.results.audio, MemoryOwner::kActivations));
  }
  return results;
}

}  // namespace ltx::dit
