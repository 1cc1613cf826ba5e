#ifndef LTX_KERNELS_OP_ENUMS_H_
#define LTX_KERNELS_OP_ENUMS_H_

#include <cstdint>

namespace ltx {

/// Pointwise functions. Evaluated in float, rounded once to the tensor's dtype.
enum class Activation : uint8_t {
  kNone,
  /// x / (1 + e^-x).
  kSilu,
  /// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
  kGeluTanh,
  kTanh,
  kSigmoid,
  kExp,
};

/// How a convolution sees the outside of its input along one axis.
enum class PadMode : uint8_t { kZeros, kReplicate, kReflect, kCircular };

}  // namespace ltx

#endif  // LTX_KERNELS_OP_ENUMS_H_
