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

void AppendKey(const StreamInputs* inputs, std::string* key) {
  if (inputs == nullptr) {
    absl::StrAppend(key, "absent;");
    return;
  }
  absl::StrAppend(key, reinterpret_cast<uintptr_t>(inputs->prepared.get()), inputs->enabled);
  for (const Tensor* tensor : inputs->Tensors()) {
    absl::StrAppend(key, ",", tensor->defined() ? tensor->shape().ToString() : "-");
  }
  for (const int32_t row : inputs->context_rows) absl::StrAppend(key, ".", row);
  absl::StrAppend(key, ";");
}

std::string KeyOf(const StreamInputs* video, const StreamInputs* audio,
                  const BatchPerturbations& perturbations) {
  std::string key;
  AppendKey(video, &key);
  AppendKey(audio, &key);
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

absl::StatusOr<StreamPair> RecordedForwards::Run(Device& device, const StreamInputs* video,
                                                 const StreamInputs* audio,
                                                 const BatchPerturbations& perturbations,
                                                 Evaluate evaluate) {
  std::string key = KeyOf(video, audio, perturbations);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) {
    LTX_ASSIGN_OR_RETURN(StreamPair results, evaluate(video, audio));
    Entry entry;
    entry.key = std::move(key);
    if (video != nullptr) entry.video_layout = video->prepared;
    if (audio != nullptr) entry.audio_layout = audio->prepared;
    entries_.push_front(std::move(entry));
    if (entries_.size() > kMaxEntries) entries_.pop_back();
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
