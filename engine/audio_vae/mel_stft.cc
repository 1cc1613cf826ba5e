#include "engine/audio_vae/mel_stft.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {
namespace {

/// Of the mel magnitudes before the logarithm, as in training.
constexpr float kLogFloor = 1e-5f;

/// Rows [rows, n_fft] of the basis as a convolution weight [rows, hop, taps] over blocks of `hop`
/// samples. A window longer than a hop ends with its block; a shorter one starts with it.
std::vector<float> BlockBasis(const std::vector<float>& basis, int64_t rows, int64_t n_fft,
                              int64_t hop, int64_t taps) {
  const int64_t lead = n_fft >= hop ? taps * hop - n_fft : 0;
  std::vector<float> weight(rows * hop * taps, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < n_fft; ++i) {
      const int64_t position = i + lead;
      weight[(row * hop + position % hop) * taps + position / hop] = basis[row * n_fft + i];
    }
  }
  return weight;
}

}  // namespace

absl::StatusOr<MelStft> MelStft::Load(checkpoint::WeightLoader loader, int64_t n_fft, int64_t hop,
                                      int64_t num_mels) {
  if (n_fft < 1 || hop < 1 || num_mels < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("vocoder bwe: n_fft = ", n_fft, ", hop_length = ", hop,
                     ", num_mels = ", num_mels, "; all must be at least 1"));
  }
  const int64_t bins = n_fft / 2 + 1;
  MelStft stft;
  stft.hop_ = hop;
  stft.taps_ = (n_fft + hop - 1) / hop;
  LTX_ASSIGN_OR_RETURN(const std::vector<float> basis,
                       loader.GetHost("stft_fn.forward_basis", Shape({2 * bins, 1, n_fft})));
  LTX_ASSIGN_OR_RETURN(
      const Tensor weight,
      TensorFromFloats(loader.device(), BlockBasis(basis, 2 * bins, n_fft, hop, stft.taps_),
                       Shape({2 * bins, hop, stft.taps_}), DType::kF32, MemoryOwner::kWorkspace));
  LTX_ASSIGN_OR_RETURN(stft.basis_, loader.device().PrepareConv(weight, Tensor(), loader.owner()));
  LTX_ASSIGN_OR_RETURN(const Tensor mel, loader.GetF32("mel_basis", Shape({num_mels, bins})));
  LTX_ASSIGN_OR_RETURN(stft.mel_basis_,
                       loader.device().PrepareLinear(mel, Tensor(), loader.owner()));
  loader.Ignore("stft_fn.inverse_basis");
  return stft;
}

absl::StatusOr<Tensor> MelStft::Forward(Device& device, const Tensor& x) const {
  const int64_t batch = x.dim(0);
  const int64_t samples = x.dim(1);
  const int64_t channels = x.dim(2);
  if (samples % hop_ != 0) {
    return absl::InternalError(
        absl::StrCat("log-mel of ", samples, " samples; must be a multiple of hop ", hop_));
  }
  const int64_t frames = samples / hop_;
  LTX_ASSIGN_OR_RETURN(Tensor h, device.Permute(x, {0, 2, 1}));
  LTX_ASSIGN_OR_RETURN(h, h.Reshape(Shape({batch * channels, frames, hop_})));
  ConvOptions options;
  options.axes[0].pad_before = taps_ - 1;
  LTX_ASSIGN_OR_RETURN(h, device.Conv(h, basis_, options));
  LTX_ASSIGN_OR_RETURN(h, device.Magnitude(h));
  LTX_ASSIGN_OR_RETURN(h, device.Linear(h, mel_basis_));
  LTX_ASSIGN_OR_RETURN(h, device.LogFloor(h, kLogFloor));
  const int64_t mels = mel_basis_.out_features;
  LTX_ASSIGN_OR_RETURN(h, h.Reshape(Shape({batch, channels, frames, mels})));
  LTX_ASSIGN_OR_RETURN(h, device.Permute(h, {0, 2, 1, 3}));
  return h.Reshape(Shape({batch, frames, channels * mels}));
}

}  // namespace ltx::audio_vae
