#ifndef LTX_KERNELS_CPU_OP_SCRATCH_H_
#define LTX_KERNELS_CPU_OP_SCRATCH_H_

#include <cstdint>

#include "kernels/op_scratch.h"

namespace ltx::cpu {

/// Scratch of the CPU's operations. Each method stands beside its operation and shares what decides
/// about the size with it.
class CpuOpScratch final : public OpScratch {
 public:
  CpuOpScratch(int threads, bool native_bf16) : threads_(threads), native_bf16_(native_bf16) {}

  /// Without what oneDNN's product itself asks for, which depends on the processor and is small.
  ScratchBlocks Linear(const LinearSize& size) const override;
  ScratchBlocks Conv(const ConvSize& size) const override;
  ScratchBlocks Attention(const AttentionSize& size) const override;
  ScratchBlocks GroupNorm(const GroupNormSize& size) const override;

 private:
  const int threads_;
  /// Whether products of bf16 run on bf16.
  const bool native_bf16_;
};

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_OP_SCRATCH_H_
