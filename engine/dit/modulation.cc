#include "engine/dit/modulation.h"

#include "kernels/status_macros.h"

namespace ltx::dit {

absl::StatusOr<Modulation> AddTable(Device& device, const Modulation& modulation,
                                    const Tensor& table, int64_t width) {
  Modulation sum;
  sum.width = width;
  if (!modulation.defined()) {
    LTX_ASSIGN_OR_RETURN(sum.vectors.rows, table.Reshape({1, table.num_elements()}));
    return sum;
  }
  sum.vectors.index = modulation.vectors.index;
  LTX_ASSIGN_OR_RETURN(sum.vectors.rows,
                       device.ScaleShiftChannels(modulation.vectors.rows, Tensor(), table));
  return sum;
}

}  // namespace ltx::dit
