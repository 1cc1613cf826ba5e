#include "kernels/cuda/memory_pool.h"

#include <algorithm>

#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// Alignment and unit of blocks: what cudaMalloc aligns to, so that cuBLASLt and vector loads see
/// the alignment they like best.
constexpr int64_t kGranule = 512;
/// Requests up to this size share segments of kSmallSegment; larger blocks never sit in those, so
/// that a small tensor that lives long cannot split a large segment.
constexpr int64_t kSmallRequest = int64_t{1} << 20;
constexpr int64_t kSmallSegment = int64_t{8} << 20;
/// Requests up to this size come in segments of kMediumSegment, larger ones in their own.
constexpr int64_t kMediumRequest = int64_t{16} << 20;
constexpr int64_t kMediumSegment = int64_t{32} << 20;
/// A pool that grows does so by this part of itself.
constexpr int64_t kGrowthShare = 8;
/// The driver maps memory in pages of this size.
constexpr int64_t kPage = int64_t{2} << 20;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t SegmentBytes(int64_t bytes) {
  if (bytes <= kSmallRequest) return kSmallSegment;
  if (bytes <= kMediumRequest) return kMediumSegment;
  return RoundUp(bytes, kPage);
}

}  // namespace

MemoryPool::~MemoryPool() { Trim(); }

uint64_t& MemoryPool::Seen(Lane lane, Lane other) { return seen_[{lane, other}]; }

void MemoryPool::AddFree(Blocks::iterator block) {
  block->second.free = true;
  free_.emplace(block->second.bytes, block->first);
}

void MemoryPool::RemoveFree(Blocks::iterator block) {
  block->second.free = false;
  free_.erase({block->second.bytes, block->first});
}

MemoryPool::Blocks::iterator MemoryPool::FindFree(int64_t bytes, Lane lane) {
  const bool small = bytes <= kSmallRequest;
  for (auto it = free_.lower_bound({bytes, nullptr}); it != free_.end(); ++it) {
    const auto block = blocks_.find(it->second);
    const Block& found = block->second;
    if ((segments_[found.segment] == kSmallSegment) != small) continue;
    if (found.lane == lane || found.freed_at <= Seen(lane, found.lane)) return block;
  }
  return blocks_.end();
}

absl::StatusOr<MemoryPool::Blocks::iterator> MemoryPool::NewSegment(int64_t bytes, Lane lane) {
  LTX_ASSIGN_OR_RETURN(void* const memory, memory_->Allocate(bytes));
  if (memory == nullptr) return blocks_.end();
  auto* const segment = static_cast<char*>(memory);
  segments_[segment] = bytes;
  usage_.reserved_bytes += bytes;
  const auto block = blocks_.emplace(segment, Block{bytes, segment, false, lane, 0}).first;
  AddFree(block);
  return block;
}

absl::StatusOr<MemoryPool::Blocks::iterator> MemoryPool::AddSegment(int64_t bytes, Lane lane) {
  const int64_t least = SegmentBytes(bytes);
  const int64_t growth =
      least == kSmallSegment
          ? 0
          : std::min(usage_.reserved_bytes / kGrowthShare / kPage * kPage, largest_growth_);
  LTX_ASSIGN_OR_RETURN(const Blocks::iterator block, NewSegment(std::max(least, growth), lane));
  if (block != blocks_.end() || growth <= least) return block;
  return NewSegment(least, lane);
}

char* MemoryPool::Cut(Blocks::iterator block, int64_t bytes) {
  RemoveFree(block);
  const int64_t rest = block->second.bytes - bytes;
  // What is left of a large segment serves large requests only; less would be lost to all.
  const bool small = segments_[block->second.segment] == kSmallSegment;
  if (rest > (small ? 0 : kSmallRequest)) {
    Block remainder = block->second;
    remainder.bytes = rest;
    block->second.bytes = bytes;
    AddFree(blocks_.emplace(block->first + bytes, remainder).first);
  }
  usage_.used_bytes += block->second.bytes;
  return block->first;
}

absl::StatusOr<void*> MemoryPool::Take(int64_t bytes, Lane lane) {
  const int64_t rounded = RoundUp(bytes, kGranule);
  absl::MutexLock lock(&mutex_);
  auto block = FindFree(rounded, lane);
  if (block == blocks_.end()) {
    LTX_ASSIGN_OR_RETURN(block, AddSegment(rounded, lane));
  }
  if (block == blocks_.end() && TrimLocked() > 0) {
    LTX_ASSIGN_OR_RETURN(block, AddSegment(rounded, lane));
  }
  if (block == blocks_.end()) return nullptr;
  return Cut(block, rounded);
}

void MemoryPool::Give(void* block, Lane lane) {
  absl::MutexLock lock(&mutex_);
  auto it = blocks_.find(static_cast<char*>(block));
  usage_.used_bytes -= it->second.bytes;
  it->second.lane = lane;
  it->second.freed_at = ++gives_;
  const auto mergeable = [&](Blocks::iterator other) {
    return other != blocks_.end() && other->second.free && other->second.lane == lane &&
           other->second.segment == it->second.segment;
  };
  if (const auto next = std::next(it); mergeable(next)) {
    RemoveFree(next);
    it->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (it != blocks_.begin()) {
    if (const auto before = std::prev(it); mergeable(before)) {
      RemoveFree(before);
      before->second.bytes += it->second.bytes;
      before->second.freed_at = it->second.freed_at;
      blocks_.erase(it);
      it = before;
    }
  }
  AddFree(it);
}

void MemoryPool::Fork(Lane from, Lane to) {
  absl::MutexLock lock(&mutex_);
  Seen(to, from) = gives_;
}

void MemoryPool::Join(Lane from, Lane into) {
  absl::MutexLock lock(&mutex_);
  Seen(into, from) = gives_;
  // Passed on in order of address, so that neighbours join.
  auto last = blocks_.end();
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    Block& block = it->second;
    if (block.free && block.lane == from) block.lane = into;
    const bool joins = last != blocks_.end() && block.free && last->second.free &&
                       block.lane == into && last->second.lane == into &&
                       block.segment == last->second.segment;
    if (!joins) {
      last = it++;
      continue;
    }
    RemoveFree(last);
    RemoveFree(it);
    last->second.bytes += block.bytes;
    last->second.freed_at = std::max(last->second.freed_at, block.freed_at);
    it = blocks_.erase(it);
    AddFree(last);
  }
}

int64_t MemoryPool::TrimLocked() {
  int64_t released = 0;
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto [segment, bytes] = *it;
    const auto first = blocks_.find(segment);
    auto end = first;
    bool all_free = true;
    for (; end != blocks_.end() && end->second.segment == segment; ++end) {
      all_free = all_free && end->second.free;
    }
    if (!all_free) {
      ++it;
      continue;
    }
    for (auto block = first; block != end; ++block) RemoveFree(block);
    blocks_.erase(first, end);
    memory_->Free(segment, bytes);
    released += bytes;
    it = segments_.erase(it);
  }
  usage_.reserved_bytes -= released;
  return released;
}

absl::StatusOr<bool> MemoryPool::Reserve(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  LTX_ASSIGN_OR_RETURN(const Blocks::iterator block, NewSegment(bytes, /*lane=*/0));
  return block != blocks_.end();
}

std::vector<int64_t> MemoryPool::segments() const {
  absl::MutexLock lock(&mutex_);
  std::vector<int64_t> bytes;
  bytes.reserve(segments_.size());
  for (const auto& segment : segments_) bytes.push_back(segment.second);
  return bytes;
}

int64_t MemoryPool::Trim() {
  absl::MutexLock lock(&mutex_);
  return TrimLocked();
}

MemoryPool::Usage MemoryPool::usage() const {
  absl::MutexLock lock(&mutex_);
  return usage_;
}

}  // namespace ltx::cuda
