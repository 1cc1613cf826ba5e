#include "engine/video_vae/attention_block.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::video_vae {
namespace {

struct Projection {
  Tensor weight;
  Tensor bias;
};

/// A 1x1 convolution stored as [out, in, 1, 1], as a matrix.
absl::StatusOr<Projection> LoadProjection(checkpoint::WeightLoader& loader,
                                          absl::string_view module, int64_t in, int64_t out) {
  Projection projection;
  LTX_ASSIGN_OR_RETURN(const Tensor weight,
                       loader.Get(absl::StrCat(module, ".weight"), Shape({out, in, 1, 1})));
  LTX_ASSIGN_OR_RETURN(projection.weight, weight.Reshape(Shape({out, in})));
  LTX_ASSIGN_OR_RETURN(projection.bias, loader.Get(absl::StrCat(module, ".bias"), Shape({out})));
  return projection;
}

/// Rows [begin, end) of a projection on their own.
absl::StatusOr<LinearWeight> PrepareRows(checkpoint::WeightLoader& loader,
                                         const Projection& projection, int64_t begin, int64_t end) {
  LTX_ASSIGN_OR_RETURN(const Tensor weight, projection.weight.Rows(begin, end));
  LTX_ASSIGN_OR_RETURN(const Tensor bias, projection.bias.Rows(begin, end));
  return loader.device().PrepareLinear(weight, bias, loader.owner());
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttentionBlock>> AttentionBlock::Load(
    checkpoint::WeightLoader loader, int64_t channels) {
  std::unique_ptr<AttentionBlock> block(new AttentionBlock(channels));
  LTX_ASSIGN_OR_RETURN(const Tensor gamma, loader.Get("norm.gamma", Shape({channels, 1, 1})));
  LTX_ASSIGN_OR_RETURN(block->gamma_, gamma.Reshape(Shape({channels})));
  LTX_ASSIGN_OR_RETURN(const Projection qkv,
                       LoadProjection(loader, "to_qkv", channels, 3 * channels));
  LTX_ASSIGN_OR_RETURN(block->query_, PrepareRows(loader, qkv, 0, channels));
  LTX_ASSIGN_OR_RETURN(block->key_, PrepareRows(loader, qkv, channels, 2 * channels));
  LTX_ASSIGN_OR_RETURN(block->value_, PrepareRows(loader, qkv, 2 * channels, 3 * channels));
  LTX_ASSIGN_OR_RETURN(const Projection proj, LoadProjection(loader, "proj", channels, channels));
  LTX_ASSIGN_OR_RETURN(block->proj_, PrepareRows(loader, proj, 0, channels));
  return block;
}

absl::StatusOr<Tensor> AttentionBlock::Forward(Tensor x, const BlockContext& context) const {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const Tensor tokens,
                       x.Reshape(Shape({x.dim(0) * x.dim(1), x.dim(2) * x.dim(3), channels_})));
  // x / |x| sqrt(C) is x over its root mean square. The bound 1e-12 on the norm only keeps an
  // all-zero vector finite; below the root it is 1e-24 / C.
  const float epsilon = 1e-24f / static_cast<float>(channels_);
  LTX_ASSIGN_OR_RETURN(const Tensor normed, device.RmsNorm(tokens, gamma_, epsilon));
  LTX_ASSIGN_OR_RETURN(const Tensor q, device.Linear(normed, query_));
  LTX_ASSIGN_OR_RETURN(const Tensor k, device.Linear(normed, key_));
  LTX_ASSIGN_OR_RETURN(const Tensor v, device.Linear(normed, value_));
  AttentionOptions options;
  options.scale = 1.0f / std::sqrt(static_cast<float>(channels_));
  LTX_ASSIGN_OR_RETURN(const Tensor attended, device.Attention(q, k, v, options));
  LTX_ASSIGN_OR_RETURN(const Tensor projected, device.Linear(attended, proj_));
  LTX_ASSIGN_OR_RETURN(const Tensor sum, device.Add(tokens, projected));
  return sum.Reshape(x.shape());
}

}  // namespace ltx::video_vae
