#ifndef LTX_BENCH_RANDOM_FILE_H_
#define LTX_BENCH_RANDOM_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace ltx::bench {

/// A checkpoint file of random bf16 tensors that takes a fraction of their memory: tensors of one
/// spread share a buffer as large as the largest of them, each from another place on. What loads it
/// goes the way of a real file, but for the disk.
///
/// Weights of a product have the spread that keeps the variance of its input; norm weights lie
/// around 1, all other vectors are small.
class RandomFile final : public checkpoint::SafetensorsFile {
 public:
  explicit RandomFile(const std::map<std::string, Shape>& shapes);

  /// Of all tensors, as a file would hold them.
  int64_t tensor_bytes() const { return tensor_bytes_; }

 private:
  /// By spread, in steps of a factor of two, and centre.
  std::map<std::pair<int, bool>, std::vector<BFloat16>> buffers_;
  int64_t tensor_bytes_ = 0;
};

}  // namespace ltx::bench

#endif  // LTX_BENCH_RANDOM_FILE_H_
