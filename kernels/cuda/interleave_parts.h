#ifndef LTX_KERNELS_CUDA_INTERLEAVE_PARTS_H_
#define LTX_KERNELS_CUDA_INTERLEAVE_PARTS_H_

namespace ltx::cuda {

/// Tensors that one launch interleaves, in device memory. As many as a model of the published kinds
/// has hidden states, and some more.
inline constexpr int kMaxInterleaveParts = 64;
struct InterleaveParts {
  const void* of[kMaxInterleaveParts] = {};
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_INTERLEAVE_PARTS_H_
