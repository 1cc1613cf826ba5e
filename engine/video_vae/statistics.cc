#include "engine/video_vae/statistics.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {
namespace {

constexpr absl::string_view kMean = "mean-of-means";
constexpr absl::string_view kStd = "std-of-means";

absl::Status CheckWidth(const checkpoint::WeightLoader& loader, absl::string_view name,
                        int64_t channels) {
  const Shape* const shape = loader.ShapeOf(name);
  if (shape != nullptr && *shape != Shape({channels})) {
    return absl::InvalidArgumentError(absl::StrCat("per_channel_statistics.", name, " has shape ",
                                                   shape->ToString(), ", but the latents have ",
                                                   channels, " channels"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChannelStatistics> ChannelStatistics::Load(checkpoint::WeightLoader loader,
                                                          int64_t channels) {
  LTX_RETURN_IF_ERROR(CheckWidth(loader, kMean, channels));
  LTX_RETURN_IF_ERROR(CheckWidth(loader, kStd, channels));
  ChannelStatistics statistics;
  statistics.channels_ = channels;
  LTX_ASSIGN_OR_RETURN(statistics.mean_, loader.Get(kMean, Shape({channels})));
  LTX_ASSIGN_OR_RETURN(statistics.std_, loader.Get(kStd, Shape({channels})));
  loader.Ignore("channel");
  loader.Ignore("mean-of-stds*");
  LTX_RETURN_IF_ERROR(loader.FinishUploads());
  return statistics;
}

absl::StatusOr<Tensor> ChannelStatistics::Normalize(Device& device, const Tensor& x) const {
  return device.NormalizeChannels(x, mean_, std_);
}

absl::StatusOr<Tensor> ChannelStatistics::UnNormalize(Device& device, const Tensor& x) const {
  return device.ScaleShiftChannels(x, std_, mean_);
}

}  // namespace ltx::video_vae
