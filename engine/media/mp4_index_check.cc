#include "engine/media/mp4_index_check.h"

#include <array>
#include <cstdint>

#include "engine/media/media_errors.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

using Bytes = absl::Span<const uint8_t>;

/// 11 hours of pictures at 24 a second, 5 hours of AAC: far beyond every limit here, and an index
/// of 24 MiB.
constexpr int64_t kMaxSamples = int64_t{1} << 20;
/// Deeper than moov/trak/mdia/minf/stbl nobody nests.
constexpr int kMaxDepth = 8;

uint64_t Big(Bytes bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[at + i];
  return value;
}

bool HoldsBoxes(absl::string_view type) {
  constexpr std::array<absl::string_view, 7> kTypes = {"moov", "trak", "mdia", "minf",
                                                       "stbl", "moof", "traf"};
  for (const absl::string_view known : kTypes) {
    if (type == known) return true;
  }
  return false;
}

/// Adds what the boxes of `bytes` announce to `samples`.
absl::Status Walk(Bytes bytes, absl::string_view name, int depth, int64_t* samples) {
  for (size_t at = 0; bytes.size() - at >= 8;) {
    uint64_t size = Big(bytes, at, 4);
    size_t header = 8;
    if (size == 1 && bytes.size() - at >= 16) {
      size = Big(bytes, at + 8, 8);
      header = 16;
    } else if (size == 0) {
      size = bytes.size() - at;
    }
    if (size < header || size > bytes.size() - at) return absl::OkStatus();
    const absl::string_view type(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    const Bytes body = bytes.subspan(at + header, size - header);
    if (HoldsBoxes(type) && depth < kMaxDepth) {
      LTX_RETURN_IF_ERROR(Walk(body, name, depth + 1, samples));
    } else if (type == "stsz" && body.size() >= 12) {
      *samples += static_cast<int64_t>(Big(body, 8, 4));
    } else if (type == "trun" && body.size() >= 8) {
      *samples += static_cast<int64_t>(Big(body, 4, 4));
    }
    if (*samples > kMaxSamples) {
      return LimitError(name, "samples in its index", static_cast<double>(*samples), kMaxSamples);
    }
    at += size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMp4Index(Bytes file, absl::string_view name) {
  int64_t samples = 0;
  return Walk(file, name, 0, &samples);
}

}  // namespace ltx::media
