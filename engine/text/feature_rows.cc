#include "engine/text/feature_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

using checkpoint::FeatureExtractorConfig;

/// Of both forms, inside the square root (v2) and beside token count and range (v1).
constexpr float kEpsilon = 1e-6f;

}  // namespace

absl::StatusOr<Tensor> FeatureRows::CenterAndScale(const Tensor& state) const {
  // The statistics run over a whole tensor, which no device operation does. This form is that of
  // one superseded model, so they are taken on the host.
  LTX_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(*device_, state));
  if (values.empty()) return state;
  double sum = 0.0;
  for (const float value : values) sum += value;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto mean =
      static_cast<float>(sum / (static_cast<double>(values.size()) + double{kEpsilon}));
  const float range = *high - *low + kEpsilon;
  const auto width = static_cast<size_t>(state.dim(-1));
  const Shape shape = {state.dim(-1)};
  LTX_ASSIGN_OR_RETURN(
      const Tensor means,
      TensorFromFloats(*device_, std::vector<float>(width, mean), shape, state.dtype()));
  LTX_ASSIGN_OR_RETURN(
      const Tensor ranges,
      TensorFromFloats(*device_, std::vector<float>(width, range / 8.0f), shape, state.dtype()));
  return device_->NormalizeChannels(state, means, ranges);
}

absl::Status FeatureRows::Add(const Tensor& state) {
  if (added_ == num_states_) {
    return absl::InternalError(
        absl::StrCat("feature rows: more than ", num_states_, " hidden states"));
  }
  if (form_ == FeatureExtractorConfig::Form::kV1) {
    LTX_ASSIGN_OR_RETURN(Tensor part, CenterAndScale(state));
    parts_.push_back(std::move(part));
  } else {
    if (!rows_.defined()) {
      Shape shape = state.shape();
      shape.set_dim(-1, num_states_ * state.dim(-1));
      LTX_ASSIGN_OR_RETURN(rows_,
                           device_->Allocate(shape, state.dtype(), MemoryOwner::kActivations));
    }
    const int64_t width = rows_.dim(-1) / num_states_;
    Columns columns(rows_, added_ * width, width);
    LTX_RETURN_IF_ERROR(device_->RmsNormInto(state, kEpsilon, &columns));
  }
  ++added_;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FeatureRows::Take() {
  if (added_ != num_states_) {
    return absl::InternalError(
        absl::StrCat("feature rows: ", added_, " hidden states instead of ", num_states_));
  }
  if (form_ == FeatureExtractorConfig::Form::kV1) {
    return device_->Concat(std::exchange(parts_, {}), -1);
  }
  return std::exchange(rows_, Tensor());
}

}  // namespace ltx::text
