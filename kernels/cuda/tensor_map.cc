#include "kernels/cuda/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

namespace ltx::cuda {
namespace {

constexpr int kMostAxes = 5;
constexpr cuuint64_t kElementBytes = 2;

/// The driver's function that makes tensor maps, found at run time: the program does not link the
/// driver, so that it starts on machines that have none.
PFN_cuTensorMapEncodeTiled_v12000 EncodeFunction() {
  static const auto function = []() -> PFN_cuTensorMapEncodeTiled_v12000 {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry,
                                                               12000, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
  }();
  return function;
}

}  // namespace

bool EncodeTensorMap(const void* data, std::initializer_list<TensorMapAxis> axes,
                     CUtensorMap* map) {
  const auto encode = EncodeFunction();
  if (encode == nullptr || axes.size() > kMostAxes) return false;
  cuuint64_t extents[kMostAxes];
  cuuint64_t strides[kMostAxes];
  cuuint32_t boxes[kMostAxes];
  cuuint32_t ones[kMostAxes];
  int count = 0;
  for (const TensorMapAxis& axis : axes) {
    extents[count] = static_cast<cuuint64_t>(axis.extent);
    // The engine takes the innermost axis for dense.
    if (count > 0) strides[count - 1] = static_cast<cuuint64_t>(axis.stride) * kElementBytes;
    boxes[count] = static_cast<cuuint32_t>(axis.box);
    ones[count] = 1;
    ++count;
  }
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(count),
                const_cast<void*>(data), extents, strides, boxes, ones,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace ltx::cuda
