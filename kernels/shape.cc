#include "kernels/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ltx {

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims(), ", "), "]"); }

}  // namespace ltx
