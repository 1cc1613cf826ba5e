#ifndef LTX_SERVER_CONDITION_COUNTED_BYTES_H_
#define LTX_SERVER_CONDITION_COUNTED_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/memory_ledger.h"

namespace ltx::server {

/// A growing run of bytes on the host whose capacity a ledger knows under kCache at all times.
class CountedBytes {
 public:
  /// `ledger` must outlive the object.
  explicit CountedBytes(MemoryLedger* ledger) : ledger_(ledger) {}
  ~CountedBytes() { ledger_->Remove(MemoryOwner::kCache, counted_); }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;

  int64_t capacity() const { return counted_; }
  int64_t size() const { return static_cast<int64_t>(data_.size()); }
  absl::string_view view() const { return data_; }
  absl::Span<const uint8_t> span() const {
    return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(data_.data()), data_.size());
  }

  /// Makes room for exactly `capacity` bytes, if there is less.
  void Reserve(int64_t capacity) {
    if (capacity <= counted_) return;
    // Counted first: while the contents move both blocks are there, and the ledger's peak shows the
    // larger one before it is touched.
    ledger_->Add(MemoryOwner::kCache, capacity - counted_);
    counted_ = capacity;
    data_.reserve(capacity);
  }
  /// There must be room.
  void Append(absl::string_view data) { data_.append(data.data(), data.size()); }

 private:
  MemoryLedger* const ledger_;
  std::string data_;
  int64_t counted_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_CONDITION_COUNTED_BYTES_H_
