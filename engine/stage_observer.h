#ifndef LTX_ENGINE_STAGE_OBSERVER_H_
#define LTX_ENGINE_STAGE_OBSERVER_H_

#include <functional>

#include "absl/strings/string_view.h"
#include "kernels/tensor.h"

namespace ltx {

/// Told of the intermediate values of a model as they arise, under names such as "up_blocks.3", so
/// that a check can find the first one that differs. An empty observer costs nothing. The tensor is
/// in the model's own layout and dtype.
using StageObserver = std::function<void(absl::string_view, const Tensor&)>;

}  // namespace ltx

#endif  // LTX_ENGINE_STAGE_OBSERVER_H_
