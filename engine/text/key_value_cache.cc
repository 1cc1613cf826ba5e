#include "engine/text/key_value_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

KeyValueCache::KeyValueCache(Device* device, std::vector<bool> windowed, int64_t window,
                             int64_t capacity)
    : device_(device),
      windowed_(std::move(windowed)),
      window_(window),
      capacity_(RoundUp(capacity, kBlock)),
      layers_(windowed_.size()) {}

absl::Status KeyValueCache::Begin(int64_t count) {
  if (size_ > 0 && count != 1) {
    return absl::InternalError("key/value cache: after the beginning one token at a time");
  }
  if (count < 1 || size_ + count > capacity_) {
    return absl::InternalError(
        absl::StrCat("key/value cache: ", size_ + count, " tokens, room for ", capacity_));
  }
  reading_ = count;
  if (size_ == 0) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(full_, SpanFrom(0));
  LTX_ASSIGN_OR_RETURN(local_, SpanFrom(std::max<int64_t>(0, size_ + 1 - window_)));
  return absl::OkStatus();
}

absl::StatusOr<KeyValueCache::Span> KeyValueCache::SpanFrom(int64_t first) const {
  Span span;
  span.begin = first / kBlock * kBlock;
  span.end = RoundUp(size_ + 1, kBlock);
  std::vector<uint8_t> mask(static_cast<size_t>(span.end - span.begin), 0);
  std::fill(mask.begin() + (first - span.begin), mask.begin() + (size_ + 1 - span.begin), 1);
  LTX_ASSIGN_OR_RETURN(span.mask, device_->Allocate({1, span.end - span.begin}, DType::kU8,
                                                    MemoryOwner::kActivations));
  LTX_RETURN_IF_ERROR(device_->Upload(mask, span.mask));
  return span;
}

absl::StatusOr<Tensor> KeyValueCache::Grow(const Tensor& rows) const {
  // Zeros, not what was there: a hidden row counts with weight zero, and 0 * NaN is none.
  LTX_ASSIGN_OR_RETURN(const Tensor grown,
                       device_->Pad(rows, 1, 0, capacity_ - rows.dim(1), PadMode::kZeros));
  return grown.Reshape({capacity_, rows.dim(2)});
}

absl::Status KeyValueCache::Put(const Tensor& row, const Tensor& rows) const {
  LTX_ASSIGN_OR_RETURN(Tensor place, rows.Rows(size_, size_ + 1));
  LTX_ASSIGN_OR_RETURN(const Tensor flat, row.Reshape(place.shape()));
  return device_->Copy(flat, &place);
}

absl::StatusOr<KeyValueCache::Visible> KeyValueCache::Append(size_t layer, const Tensor& keys,
                                                             const Tensor& values) {
  if (keys.dim(1) != reading_) {
    return absl::InternalError(
        absl::StrCat("key/value cache: ", keys.dim(1), " rows of ", reading_, " tokens"));
  }
  Layer& kept = layers_[layer];
  if (size_ == 0) {
    LTX_ASSIGN_OR_RETURN(kept.keys, Grow(keys));
    LTX_ASSIGN_OR_RETURN(kept.values, Grow(values));
    return Visible{keys, values, Tensor()};
  }
  LTX_RETURN_IF_ERROR(Put(keys, kept.keys));
  LTX_RETURN_IF_ERROR(Put(values, kept.values));
  const Span& span = windowed_[layer] ? local_ : full_;
  Visible visible;
  LTX_ASSIGN_OR_RETURN(visible.keys, kept.keys.Rows(span.begin, span.end));
  LTX_ASSIGN_OR_RETURN(visible.keys, visible.keys.Reshape({1, span.end - span.begin, keys.dim(2)}));
  LTX_ASSIGN_OR_RETURN(visible.values, kept.values.Rows(span.begin, span.end));
  LTX_ASSIGN_OR_RETURN(visible.values,
                       visible.values.Reshape({1, span.end - span.begin, values.dim(2)}));
  visible.mask = span.mask;
  return visible;
}

void KeyValueCache::End() { size_ += std::exchange(reading_, 0); }

}  // namespace ltx::text
