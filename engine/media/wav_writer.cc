#include "engine/media/wav_writer.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/atomic_file.h"
#include "engine/media/pixel_convert.h"
#include "kernels/status_macros.h"

namespace ltx::media {
namespace {

constexpr int kChannels = 2;
constexpr int kBytesPerSample = 2;
constexpr int kFrameBytes = kChannels * kBytesPerSample;
/// Up to the samples: RIFF header, format chunk, head of the data chunk.
constexpr int64_t kHeaderBytes = 44;
constexpr int kPcmFormat = 1;

void Append(absl::string_view tag, std::vector<uint8_t>* bytes) {
  bytes->insert(bytes->end(), tag.begin(), tag.end());
}
/// Little-endian.
void Append(uint64_t value, int size, std::vector<uint8_t>* bytes) {
  for (int i = 0; i < size; ++i) bytes->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

std::vector<uint8_t> Header(int64_t data_bytes, int sample_rate) {
  std::vector<uint8_t> bytes;
  Append("RIFF", &bytes);
  Append(kHeaderBytes - 8 + data_bytes, 4, &bytes);
  Append("WAVEfmt ", &bytes);
  Append(16, 4, &bytes);
  Append(kPcmFormat, 2, &bytes);
  Append(kChannels, 2, &bytes);
  Append(sample_rate, 4, &bytes);
  Append(static_cast<uint64_t>(sample_rate) * kFrameBytes, 4, &bytes);
  Append(kFrameBytes, 2, &bytes);
  Append(8 * kBytesPerSample, 2, &bytes);
  Append("data", &bytes);
  Append(data_bytes, 4, &bytes);
  return bytes;
}

}  // namespace

absl::StatusOr<int64_t> WriteWav(absl::string_view path, absl::Span<const float> waveform,
                                 int64_t samples, int sample_rate) {
  constexpr int64_t kMaxBytes = std::numeric_limits<uint32_t>::max() - kHeaderBytes;
  if (waveform.empty() || waveform.size() % kChannels != 0 || samples <= 0 ||
      samples > kMaxBytes / kFrameBytes || sample_rate <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", samples, " samples at ",
                                                   sample_rate, " Hz from ", waveform.size(),
                                                   " values of ", kChannels, " channels as WAV"));
  }
  std::vector<int16_t> pcm = WaveformToPcm16(waveform);
  pcm.resize(samples * kChannels);
  const int64_t data_bytes = samples * kFrameBytes;
  std::vector<uint8_t> bytes = Header(data_bytes, sample_rate);
  bytes.reserve(kHeaderBytes + data_bytes);
  for (const int16_t value : pcm) Append(static_cast<uint16_t>(value), kBytesPerSample, &bytes);

  LTX_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LTX_RETURN_IF_ERROR(file.Write(bytes));
  LTX_RETURN_IF_ERROR(file.Commit());
  return static_cast<int64_t>(bytes.size());
}

}  // namespace ltx::media
