#include "kernels/conv_geometry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx {

absl::Status CheckPadding(int axis, int64_t extent, int64_t before, int64_t after, PadMode mode) {
  if (before < 0 || after < 0) {
    return absl::InternalError(absl::StrCat("axis ", axis, ": padding of ", before, " and ", after,
                                            ", must not be negative"));
  }
  if (before == 0 && after == 0) return absl::OkStatus();
  if (mode != PadMode::kZeros && extent == 0) {
    return absl::InternalError(
        absl::StrCat("axis ", axis, ": an empty axis has nothing to pad with"));
  }
  if (mode == PadMode::kReflect && std::max(before, after) >= extent) {
    return absl::InternalError(absl::StrCat("axis ", axis, ": reflection of ", before, " and ",
                                            after, " elements needs more than ", extent));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvAxis> MakeConvAxis(int axis, int64_t input, int64_t kernel,
                                      const AxisGeometry& geometry) {
  if (geometry.stride < 1 || geometry.dilation < 1) {
    return absl::InternalError(absl::StrCat("axis ", axis, ": stride ", geometry.stride,
                                            " and dilation ", geometry.dilation,
                                            " must be positive"));
  }
  LTX_RETURN_IF_ERROR(
      CheckPadding(axis, input, geometry.pad_before, geometry.pad_after, geometry.pad_mode));
  const int64_t padded = input + geometry.pad_before + geometry.pad_after;
  const int64_t span = geometry.dilation * (kernel - 1) + 1;
  if (padded < span && input != 0) {
    return absl::InternalError(absl::StrCat("axis ", axis, ": ", padded,
                                            " padded elements are fewer than the kernel's span of ",
                                            span));
  }
  ConvAxis result;
  result.input = input;
  result.output = padded < span ? 0 : (padded - span) / geometry.stride + 1;
  result.kernel = kernel;
  result.stride = geometry.stride;
  result.dilation = geometry.dilation;
  result.pad_before = geometry.pad_before;
  result.pad_mode = geometry.pad_mode;
  return result;
}

absl::StatusOr<TransposedConv> MakeTransposedConv(int64_t input, int64_t kernel, int64_t stride,
                                                  int64_t padding) {
  if (stride < 1 || padding < 0) {
    return absl::InternalError(absl::StrCat("stride ", stride, " must be positive and padding ",
                                            padding, " not negative"));
  }
  const int64_t first = padding / stride;
  TransposedConv result;
  result.length =
      input == 0 ? 0 : std::max<int64_t>(0, (input - 1) * stride - 2 * padding + kernel);
  result.phase.input = input;
  result.phase.output = result.length == 0 ? 0 : (result.length - 1 + padding) / stride + 1 - first;
  result.phase.kernel = (kernel + stride - 1) / stride;
  result.phase.dilation = -1;
  result.phase.pad_before = -first;
  result.crop = padding - first * stride;
  return result;
}

}  // namespace ltx
