#include "engine/audio_vae/decode_audio.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {
namespace {

absl::Status CheckFinite(Device& device, const Tensor& tensor, absl::string_view what) {
  LTX_ASSIGN_OR_RETURN(const bool finite, device.AllFinite(tensor));
  if (finite) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(what, " holds NaN or Inf"));
}

}  // namespace

absl::StatusOr<Waveform> DecodeAudio(Device& device, const AudioDecoder& decoder,
                                     const Vocoder& vocoder, const Tensor& tokens,
                                     const StageObserver& observer) {
  if (tokens.rank() != 3 || tokens.dim(0) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("audio latent ", tokens.shape().ToString(),
                                                   "; must be one clip [1, L, ",
                                                   decoder.token_values(), "]"));
  }
  LTX_RETURN_IF_ERROR(CheckFinite(device, tokens, "audio latent"));
  Tensor x = tokens;
  if (x.dtype() != decoder.dtype()) {
    LTX_ASSIGN_OR_RETURN(x, device.Cast(x, decoder.dtype()));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor mel, decoder.Forward(device, x, observer));
  if (observer) observer("mel", mel);
  LTX_ASSIGN_OR_RETURN(x, vocoder.Forward(device, mel, observer));
  LTX_RETURN_IF_ERROR(CheckFinite(device, x, "decoded waveform"));
  Waveform waveform;
  waveform.sample_rate = vocoder.sample_rate();
  LTX_ASSIGN_OR_RETURN(x, device.Permute(x, {0, 2, 1}));
  LTX_ASSIGN_OR_RETURN(waveform.samples, x.Reshape(Shape({x.dim(1), x.dim(2)})));
  return waveform;
}

}  // namespace ltx::audio_vae
