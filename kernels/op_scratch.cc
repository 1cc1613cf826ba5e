#include "kernels/op_scratch.h"

namespace ltx {
namespace {

class None final : public OpScratch {
 public:
  int64_t Linear(const LinearSize&) const override { return 0; }
  int64_t Conv(const ConvSize&) const override { return 0; }
  int64_t Attention(const AttentionSize&) const override { return 0; }
  int64_t GroupNorm(const GroupNormSize&) const override { return 0; }
};

}  // namespace

const OpScratch& NoOpScratch() {
  static const None kNone;
  return kNone;
}

}  // namespace ltx
