#include "engine/dit/modulation.h"

#include <utility>

#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// Distinct timesteps up to which the sums of all blocks are kept: conditioning gives a handful,
/// and each takes 4 MB at the full size.
constexpr int64_t kMaxKeptRows = 16;

/// [1, U, W] as the rows of a modulation.
absl::StatusOr<Tensor> AsRows(const Tensor& sums) {
  return sums.Reshape({sums.dim(0) * sums.dim(1), sums.dim(2)});
}

}  // namespace

absl::StatusOr<RowVectors> OfBatchRows(const RowVectors& vectors, int64_t batch, int64_t begin,
                                       int64_t end) {
  RowVectors part = vectors;
  if (vectors.index.defined()) {
    const int64_t tokens = vectors.index.dim(0) / batch;
    LTX_ASSIGN_OR_RETURN(part.index, vectors.index.Rows(begin * tokens, end * tokens));
  } else if (vectors.rows.defined() && vectors.rows.dim(0) > 1) {
    LTX_ASSIGN_OR_RETURN(part.rows, vectors.rows.Rows(begin, end));
  }
  return part;
}

absl::StatusOr<BlockModulations> BlockModulations::Make(Device& device, const Modulation& shared,
                                                        const Columns& tables, int64_t width) {
  BlockModulations all;
  all.shared_ = shared;
  all.shared_.width = width;
  all.tables_ = tables;
  if (!shared.defined()) {
    // Nothing to add: the tables themselves.
    LTX_ASSIGN_OR_RETURN(const Tensor copy,
                         device.Slice(tables.tensor, 1, tables.begin, tables.begin + tables.width));
    LTX_ASSIGN_OR_RETURN(all.sums_, copy.Reshape({copy.dim(0), 1, copy.dim(1)}));
  } else if (shared.vectors.rows.dim(0) <= kMaxKeptRows) {
    LTX_ASSIGN_OR_RETURN(all.sums_, device.OuterSum(tables, shared.vectors.rows));
  }
  return all;
}

absl::StatusOr<Modulation> BlockModulations::Of(Device& device, int64_t block) const {
  Modulation sum = shared_;
  if (sums_.defined()) {
    LTX_ASSIGN_OR_RETURN(const Tensor rows, sums_.Rows(block, block + 1));
    LTX_ASSIGN_OR_RETURN(sum.vectors.rows, AsRows(rows));
    return sum;
  }
  LTX_ASSIGN_OR_RETURN(Tensor table, tables_.tensor.Rows(block, block + 1));
  LTX_ASSIGN_OR_RETURN(const Tensor rows,
                       device.OuterSum(Columns(std::move(table), tables_.begin, tables_.width),
                                       shared_.vectors.rows));
  LTX_ASSIGN_OR_RETURN(sum.vectors.rows, AsRows(rows));
  return sum;
}

}  // namespace ltx::dit
