#include "engine/sampling/noise_source.h"

#include <utility>
#include <vector>

#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {

GeneratedNoise::GeneratedNoise(MakeGenerator make, uint64_t seed, uint64_t loop_seed, DType dtype)
    : make_(std::move(make)), loop_seed_(loop_seed), dtype_(dtype), main_(make_(seed)) {}

absl::StatusOr<Tensor> GeneratedNoise::Draw(Device& device, const NoiseDraw& draw,
                                            const Shape& shape, DType dtype) {
  NormalGenerator* generator = main_.get();
  if (draw.use == NoiseDraw::Use::kLoop) {
    if (loop_ == nullptr || loop_stage_ != draw.stage) {
      loop_ = make_(loop_seed_);
      loop_stage_ = draw.stage;
    }
    generator = loop_.get();
  }
  LTX_ASSIGN_OR_RETURN(const std::vector<float> values,
                       generator->Draw(shape.num_elements(), dtype_));
  return TensorFromFloats(device, values, shape, dtype);
}

}  // namespace ltx::sampling
