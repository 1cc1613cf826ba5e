#ifndef LTX_KERNELS_CUDA_CONV_OPERANDS_H_
#define LTX_KERNELS_CUDA_CONV_OPERANDS_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/conv_geometry.h"
#include "kernels/op_types.h"

namespace ltx::cuda {

/// Whether this is a GPU that the kernels on tensor cores are written for: their instructions are
/// those of compute capability 9.0 and of no other.
inline bool IsHopper(const cudaDeviceProp& gpu) { return gpu.major == 9 && gpu.minor == 0; }

/// A convolution's weight as CudaDevice prepares it.
struct CudaConv final : public PreparedWeight {
  Tensor weight;  ///< [taps, N, C]
  Tensor bias;    ///< f32 [N] or undefined.
  DType dtype = DType::kF32;
  bool transposed = false;
};

/// A convolution's operands, checked.
struct ConvOperands {
  const CudaConv* conv = nullptr;
  /// Padded in front to three with extents of one.
  std::array<ConvAxis, 3> axes;
  /// Of the result.
  Shape shape;
};

/// INTERNAL, naming the operation and its operands, if these do not fit.
absl::StatusOr<ConvOperands> CheckConv(absl::string_view operation, const Tensor& x,
                                       const ConvWeight& weight, const ConvOptions& options);

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CONV_OPERANDS_H_
