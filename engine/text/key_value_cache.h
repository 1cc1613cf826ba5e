#ifndef LTX_ENGINE_TEXT_KEY_VALUE_CACHE_H_
#define LTX_ENGINE_TEXT_KEY_VALUE_CACHE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/device.h"

namespace ltx::text {

/// Keys and values of the tokens that a tower has read, layer by layer, so that a further token
/// costs one row. It takes a text's beginning at once and then one token at a time, up to a length
/// known beforehand: memory is allocated once (owner kActivations) and a token is written in place.
///
/// What a token sees is handed out in whole blocks of rows with a mask, so that attention meets one
/// shape for a whole block of tokens: kernels and their plans are made per shape.
class KeyValueCache {
 public:
  /// A trade of masked rows against shapes: at most 63 rows too many, and at most 9 shapes in 512
  /// tokens.
  static constexpr int64_t kBlock = 64;

  /// Whether each layer sees the last `window` tokens only. Room for `capacity` tokens.
  KeyValueCache(Device* device, std::vector<bool> windowed, int64_t window, int64_t capacity);

  /// Tokens read.
  int64_t size() const { return size_; }

  /// `count` tokens will be read: all layers get theirs by Append, then End. INTERNAL if they do
  /// not fit, or if several come after the beginning.
  absl::Status Begin(int64_t count);

  /// What the queries of this reading see in a layer.
  struct Visible {
    Tensor keys, values;
    /// u8 [1, rows], 0 hides; undefined at the beginning, where queries and keys are the same
    /// tokens.
    Tensor mask;
  };
  /// Adds a layer's keys and values [1, count, width].
  absl::StatusOr<Visible> Append(size_t layer, const Tensor& keys, const Tensor& values);

  void End();

 private:
  /// [capacity, width].
  struct Layer {
    Tensor keys, values;
  };
  /// Rows [begin, end) and which of them count.
  struct Span {
    int64_t begin = 0, end = 0;
    Tensor mask;
  };
  absl::StatusOr<Span> SpanFrom(int64_t first) const;
  absl::StatusOr<Tensor> Grow(const Tensor& rows) const;
  absl::Status Put(const Tensor& row, const Tensor& rows) const;

  Device* const device_;
  const std::vector<bool> windowed_;
  const int64_t window_;
  /// A multiple of kBlock.
  const int64_t capacity_;
  int64_t size_ = 0;
  int64_t reading_ = 0;
  std::vector<Layer> layers_;
  Span full_, local_;
};

}  // namespace ltx::text

#endif  // LTX_ENGINE_TEXT_KEY_VALUE_CACHE_H_
