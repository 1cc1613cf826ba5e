#include "engine/audio_vae/attention_block.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::audio_vae {

absl::StatusOr<AttentionBlock> AttentionBlock::Load(checkpoint::WeightLoader loader,
                                                    int64_t channels, checkpoint::AudioNorm norm) {
  const Shape pointwise({1, 1});
  AttentionBlock block;
  LTX_ASSIGN_OR_RETURN(block.norm_, Normalization::Load(loader, "norm", channels, norm));
  LTX_ASSIGN_OR_RETURN(block.query_, loader.Conv("q", channels, channels, pointwise));
  LTX_ASSIGN_OR_RETURN(block.key_, loader.Conv("k", channels, channels, pointwise));
  LTX_ASSIGN_OR_RETURN(block.value_, loader.Conv("v", channels, channels, pointwise));
  LTX_ASSIGN_OR_RETURN(block.projection_, loader.Conv("proj_out", channels, channels, pointwise));
  return block;
}

absl::StatusOr<Tensor> AttentionBlock::Forward(Device& device, const Tensor& x) const {
  const int64_t positions = x.dim(1) * x.dim(2);
  const int64_t channels = x.dim(3);
  if (positions > kMaxPositions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "audio attention over ", x.dim(1), " frames x ", x.dim(2), " bins = ", positions,
        " positions; at most ", kMaxPositions, ": shorten the audio"));
  }
  const Shape sequence({x.dim(0), positions, channels});
  LTX_ASSIGN_OR_RETURN(const Tensor normed, norm_.Forward(device, x, Activation::kNone));
  LTX_ASSIGN_OR_RETURN(Tensor query, device.Conv(normed, query_, {}));
  LTX_ASSIGN_OR_RETURN(Tensor key, device.Conv(normed, key_, {}));
  LTX_ASSIGN_OR_RETURN(Tensor value, device.Conv(normed, value_, {}));
  LTX_ASSIGN_OR_RETURN(query, query.Reshape(sequence));
  LTX_ASSIGN_OR_RETURN(key, key.Reshape(sequence));
  LTX_ASSIGN_OR_RETURN(value, value.Reshape(sequence));
  AttentionOptions attention;
  attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(channels)));
  LTX_ASSIGN_OR_RETURN(Tensor h, device.Attention(query, key, value, attention));
  LTX_ASSIGN_OR_RETURN(h, h.Reshape(x.shape()));
  ConvOptions projection;
  projection.residual = x;
  return device.Conv(h, projection_, projection);
}

}  // namespace ltx::audio_vae
