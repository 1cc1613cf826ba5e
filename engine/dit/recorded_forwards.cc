#include "engine/dit/recorded_forwards.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// Kept at least: a request has two stages, and guidance up to four passes that follow each other.
constexpr size_t kFewEntries = 4;
/// Kept at most: clips of a dozen sizes in turns. A driver takes some 5 MB for each (H200, 3,000
/// kernels), which are in no ledger.
constexpr size_t kMostEntries = 24;
/// Above it no more than kFewEntries are kept. In bf16 at 22B a clip of 768x512x121 has 0.13 GB,
/// most of it rotary tables, one of 1280x704x121 twice that.
constexpr int64_t kMostBytes = int64_t{1} << 30;

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

int64_t BytesOf(const Tensor& tensor) { return tensor.defined() ? tensor.num_bytes() : 0; }

/// Adds what a recording of a forward over `inputs` keeps, but for its result.
void AddBytes(const StreamInputs* inputs, RecordingBytes* bytes) {
  if (inputs == nullptr) return;
  for (const Tensor* tensor : inputs->Tensors()) bytes->own += BytesOf(*tensor);
  const PreparedStream& layout = *inputs->prepared;
  for (const Tensor* tensor : {&layout.self_bias, &layout.rope.cos, &layout.rope.sin,
                               &layout.cross_rope.cos, &layout.cross_rope.sin}) {
    bytes->tables += BytesOf(*tensor);
  }
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

/// Brings a result to where replays leave it, which is made if it is not there.
absl::Status KeepResult(Device& device, const Tensor& result, Tensor* kept) {
  if (!result.defined()) return absl::OkStatus();
  if (kept->defined()) return device.Copy(result, kept);
  LTX_ASSIGN_OR_RETURN(*kept, CopyForOwner(device, result, MemoryOwner::kRecordings));
  return absl::OkStatus();
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

std::vector<RecordedForwards::Kind> RecordedForwards::Recorded() const {
  std::vector<Kind> kinds;
  absl::MutexLock lock(&mutex_);
  for (const Published& published : published_) {
    if (!published.recording->outdated()) kinds.push_back(published.kind);
  }
  return kinds;
}

absl::Status RecordedForwards::Assume(Device& device, const std::vector<Kind>& kinds) {
  Clear();
  for (const Kind& kind : kinds) {
    Entry entry;
    entry.kind = kind.name;
    LTX_ASSIGN_OR_RETURN(entry.assumed,
                         device.Allocate({kind.bytes.own}, DType::kU8, MemoryOwner::kRecordings));
    entry.bytes = kind.bytes;
    entries_.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

void RecordedForwards::Publish() {
  std::vector<Published> recordings;
  for (const Entry& entry : entries_) {
    if (entry.recording == nullptr) continue;
    recordings.push_back({{entry.kind, entry.bytes}, entry.recording});
  }
  absl::MutexLock lock(&mutex_);
  published_ = std::move(recordings);
}

void RecordedForwards::MakeRoom(const RecordingBytes& bytes) {
  int64_t total = bytes.own + bytes.tables;
  for (const Entry& entry : entries_) total += entry.bytes.own + entry.bytes.tables;
  while (entries_.size() >= kFewEntries &&
         (entries_.size() >= kMostEntries || total > kMostBytes)) {
    total -= entries_.back().bytes.own + entries_.back().bytes.tables;
    entries_.pop_back();
  }
}

RecordedForwards::Entry RecordedForwards::MakeEntry(std::string key, const StreamInputs* video,
                                                    const StreamInputs* audio,
                                                    const BatchPerturbations& perturbations) {
  Entry entry;
  entry.key = std::move(key);
  entry.kind = KeyOf(video, audio, perturbations, FingerprintOf);
  if (video != nullptr) entry.video_layout = video->prepared;
  if (audio != nullptr) entry.audio_layout = audio->prepared;
  entry.perturbations = perturbations;
  AddBytes(video, &entry.bytes);
  AddBytes(audio, &entry.bytes);
  return entry;
}

absl::Status RecordedForwards::Record(Device& device, Evaluate evaluate, Entry* entry) {
  LTX_ASSIGN_OR_RETURN(entry->recording, device.Record([&]() -> absl::Status {
    LTX_ASSIGN_OR_RETURN(
        const StreamPair results,
        evaluate(PointerTo(entry->video), PointerTo(entry->audio), entry->perturbations));
    // So that nothing stays in the pool that all recordings share.
    LTX_RETURN_IF_ERROR(KeepResult(device, results.video, &entry->results.video));
    return KeepResult(device, results.audio, &entry->results.audio);
  }));
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordedForwards::Refresh(Device& device, Evaluate evaluate) {
  const auto outdated = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.recording != nullptr && entry.recording->outdated();
  });
  if (outdated == entries_.end()) return false;
  const absl::Status recorded = Record(device, evaluate, &*outdated);
  if (!recorded.ok()) entries_.erase(outdated);
  Publish();
  LTX_RETURN_IF_ERROR(recorded);
  return true;
}

absl::Status RecordedForwards::Add(Device& device, const StreamInputs* video,
                                   const StreamInputs* audio, Evaluate evaluate, Entry entry) {
  const auto assumed = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& other) {
    return other.key.empty() && other.kind == entry.kind;
  });
  const bool is_new = assumed == entries_.end();
  if (!is_new) entries_.erase(assumed);
  MakeRoom(entry.bytes);
  LTX_ASSIGN_OR_RETURN(entry.video, OwnInputs(device, video));
  LTX_ASSIGN_OR_RETURN(entry.audio, OwnInputs(device, audio));
  LTX_RETURN_IF_ERROR(Record(device, evaluate, &entry));
  entry.bytes.own += BytesOf(entry.results.video) + BytesOf(entry.results.audio);
  entries_.push_front(std::move(entry));
  if (is_new) prepared_.recorded += 1;
  return absl::OkStatus();
}

absl::StatusOr<StreamPair> RecordedForwards::Run(Device& device, const StreamInputs* video,
                                                 const StreamInputs* audio,
                                                 const BatchPerturbations& perturbations,
                                                 Evaluate evaluate) {
  std::string key = KeyOf(video, audio, perturbations, AddressOf);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) {
    const absl::Status added =
        Add(device, video, audio, evaluate, MakeEntry(std::move(key), video, audio, perturbations));
    // Others may have gone for it.
    Publish();
    LTX_RETURN_IF_ERROR(added);
  } else {
    entries_.splice(entries_.begin(), entries_, found);
    if (found->recording->outdated()) {
      LTX_RETURN_IF_ERROR(Refresh(device, evaluate).status());
      prepared_.recorded += 1;
    }
    LTX_RETURN_IF_ERROR(CopyInputs(device, video, &found->video));
    LTX_RETURN_IF_ERROR(CopyInputs(device, audio, &found->audio));
  }
  const Entry& entry = entries_.front();
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
