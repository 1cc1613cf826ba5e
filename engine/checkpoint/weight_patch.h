#ifndef LTX_ENGINE_CHECKPOINT_WEIGHT_PATCH_H_
#define LTX_ENGINE_CHECKPOINT_WEIGHT_PATCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace ltx::checkpoint {

/// A change of some linear weights on their way from a file to a device. The files stay as they
/// are: loading once more without the patch, or with another, starts from clean weights.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;
  /// Full names of the weights it changes, sorted.
  virtual std::vector<std::string> Names() const = 0;
  virtual bool Changes(absl::string_view name) const = 0;
  /// The changed weight: shape and dtype of `weight` [out, in].
  virtual absl::StatusOr<Tensor> Apply(Device& device, absl::string_view name,
                                       const Tensor& weight) const = 0;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_WEIGHT_PATCH_H_
