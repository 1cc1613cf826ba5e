#include "engine/sampling/normal_generator.h"

#include "absl/strings/str_cat.h"

namespace ltx::sampling {

absl::Status CheckDraw(int64_t count, DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kBF16 && dtype != DType::kF64) {
    return absl::InvalidArgumentError(
        absl::StrCat("noise of dtype ", DTypeName(dtype), " is not drawn; known: F32, BF16, F64"));
  }
  constexpr int64_t kTooManyBytes = int64_t{1} << 31;
  if (count < 0 || count > (kTooManyBytes - 1) / SizeOf(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a noise tensor of ", count, " elements is not drawn: it needs 0 to 2^31 - 1 ", "bytes"));
  }
  return absl::OkStatus();
}

}  // namespace ltx::sampling
