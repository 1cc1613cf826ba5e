#include "engine/sampling/noise_source.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::sampling {
namespace {

absl::Status Standardize(absl::Span<double> values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0.0;
  for (double& value : values) {
    value -= mean;
    squares += value * value;
  }
  if (values.size() < 2 || squares == 0.0) {
    return absl::InvalidArgumentError(
        absl::StrCat("noise of ", values.size(), " equal values cannot be standardised"));
  }
  const double deviation = std::sqrt(squares / (count - 1.0));
  for (double& value : values) value /= deviation;
  return absl::OkStatus();
}

}  // namespace

absl::Status StandardizeNoise(int64_t rows, std::vector<double>* values) {
  LTX_RETURN_IF_ERROR(Standardize(absl::MakeSpan(*values)));
  const size_t length = values->size() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    LTX_RETURN_IF_ERROR(Standardize(absl::MakeSpan(values->data() + row * length, length)));
  }
  return absl::OkStatus();
}

GeneratedNoise::GeneratedNoise(MakeGenerator make, uint64_t seed, uint64_t loop_seed, DType dtype)
    : make_(std::move(make)), loop_seed_(loop_seed), dtype_(dtype), main_(make_(seed)) {}

NormalGenerator& GeneratedNoise::LoopGenerator(const NoiseDraw& draw) {
  const bool half_step = draw.use == NoiseDraw::Use::kHalfStep;
  LoopStream& stream = half_step ? half_steps_ : whole_steps_;
  if (stream.generator == nullptr || stream.stage != draw.stage) {
    stream.generator = make_(loop_seed_ + (half_step ? kHalfStepSeedOffset : 0));
    stream.stage = draw.stage;
  }
  return *stream.generator;
}

absl::StatusOr<Tensor> GeneratedNoise::Draw(Device& device, const NoiseDraw& draw,
                                            const Shape& shape, DType dtype) {
  const bool in_loop = draw.use == NoiseDraw::Use::kLoop || draw.use == NoiseDraw::Use::kHalfStep;
  NormalGenerator& generator = in_loop ? LoopGenerator(draw) : *main_;
  if (dtype == DType::kF64) {
    LTX_ASSIGN_OR_RETURN(std::vector<double> values, generator.DrawDoubles(shape.num_elements()));
    LTX_RETURN_IF_ERROR(StandardizeNoise(shape.dim(0), &values));
    return TensorFromDoubles(device, values, shape);
  }
  LTX_ASSIGN_OR_RETURN(const std::vector<float> values,
                       generator.Draw(shape.num_elements(), dtype_));
  return TensorFromFloats(device, values, shape, dtype);
}

}  // namespace ltx::sampling
