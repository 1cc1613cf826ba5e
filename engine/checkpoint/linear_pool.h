#ifndef LTX_ENGINE_CHECKPOINT_LINEAR_POOL_H_
#define LTX_ENGINE_CHECKPOINT_LINEAR_POOL_H_

#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "kernels/device.h"

namespace ltx::checkpoint {

/// Linear weights as they lie on a device, for models that are loaded from the same files into the
/// same dtype: what a patch leaves alone is one piece of memory in all of them. Holding a weight
/// here keeps it on the device. Driven by the device's thread.
class LinearPool {
 public:
  /// nullptr if there is none under this key.
  const LinearWeight* Find(absl::string_view key) const {
    const auto found = weights_.find(key);
    return found == weights_.end() ? nullptr : &found->second;
  }
  void Insert(std::string key, LinearWeight weight) {
    weights_.insert_or_assign(std::move(key), std::move(weight));
  }

 private:
  std::map<std::string, LinearWeight, std::less<>> weights_;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_LINEAR_POOL_H_
