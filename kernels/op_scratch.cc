#include "kernels/op_scratch.h"

namespace ltx {
namespace {

class None final : public OpScratch {
 public:
  ScratchBlocks Linear(const LinearSize&) const override { return 0; }
  ScratchBlocks Conv(const ConvSize&) const override { return 0; }
  ScratchBlocks Attention(const AttentionSize&) const override { return 0; }
  ScratchBlocks GroupNorm(const GroupNormSize&) const override { return 0; }
};

}  // namespace

const OpScratch& NoOpScratch() {
  static const None kNone;
  return kNone;
}

}  // namespace ltx
