#ifndef LTX_KERNELS_STATUS_MACROS_H_
#define LTX_KERNELS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Early returns for absl::Status and absl::StatusOr, since the distribution's Abseil has none.

/// Returns from the enclosing function with the status of `expr` unless it is OK.
#define LTX_RETURN_IF_ERROR(expr)                                              \
  do {                                                                         \
    if (absl::Status ltx_status = (expr); !ltx_status.ok()) return ltx_status; \
  } while (false)

#define LTX_STATUS_CONCAT_INNER(a, b) a##b
#define LTX_STATUS_CONCAT(a, b) LTX_STATUS_CONCAT_INNER(a, b)

/// `LTX_ASSIGN_OR_RETURN(Tensor y, device.Linear(x, w));` declares or assigns `lhs` from a
/// StatusOr, or returns its status. A type with a comma in it needs a using-declaration first.
#define LTX_ASSIGN_OR_RETURN(lhs, expr) \
  LTX_ASSIGN_OR_RETURN_IMPL(LTX_STATUS_CONCAT(ltx_statusor_, __LINE__), lhs, expr)
#define LTX_ASSIGN_OR_RETURN_IMPL(temporary, lhs, expr)      \
  auto temporary = (expr);                                   \
  if (!temporary.ok()) return std::move(temporary).status(); \
  lhs = *std::move(temporary)

#endif  // LTX_KERNELS_STATUS_MACROS_H_
