#include "engine/audio_vae/audio_statistics.h"

#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<AudioStatistics> AudioStatistics::Load(checkpoint::WeightLoader loader,
                                                      int64_t values) {
  AudioStatistics statistics;
  LTX_ASSIGN_OR_RETURN(statistics.mean_,
                       loader.Get("per_channel_statistics.mean-of-means", Shape({values})));
  LTX_ASSIGN_OR_RETURN(statistics.std_,
                       loader.Get("per_channel_statistics.std-of-means", Shape({values})));
  return statistics;
}

absl::StatusOr<Tensor> AudioStatistics::Denormalize(Device& device, const Tensor& tokens) const {
  return device.ScaleShiftChannels(tokens, std_, mean_);
}

absl::StatusOr<Tensor> AudioStatistics::Normalize(Device& device, const Tensor& tokens) const {
  return device.NormalizeChannels(tokens, mean_, std_);
}

}  // namespace ltx::audio_vae
