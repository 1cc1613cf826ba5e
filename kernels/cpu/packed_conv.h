#ifndef LTX_KERNELS_CPU_PACKED_CONV_H_
#define LTX_KERNELS_CPU_PACKED_CONV_H_

#include <cstdint>

#include "kernels/conv_geometry.h"
#include "kernels/op_types.h"
#include "kernels/tensor.h"

namespace ltx::cpu {

/// A convolution as a product: rows of input patches, read in place or gathered piece by piece into
/// cache, times a packed weight. No patch matrix and no padded copy of the input exists at any
/// time, every padding mode costs the same, and the packed weight serves every geometry.
///
/// Why not oneDNN 2.6, whose channels-last kernels reach 1.2 times the speed on small volumes: they
/// take 20 to 130 ms to compile for each length of a one-dimensional signal, fall behind five times
/// on the one-channel kernels of an STFT, know no padding but zeros, and want another weight layout
/// for another geometry. (AVX-512, one core.)

/// Weight of a convolution: strips of 16 output channels, each [tap][input channel][16], in the
/// dtype of the checkpoint; the bias in f32, padded to whole strips with zeros.
class PackedConv final : public PreparedWeight {
 public:
  DType dtype = DType::kF32;
  bool transposed = false;
  int64_t strips = 0;
  int64_t taps = 0;
  Tensor weight;
  /// Undefined: none.
  Tensor bias;
};

/// Distances in elements between neighbours along the axes of a weight as the checkpoint has it.
struct ConvWeightStrides {
  int64_t output_channel = 0;
  int64_t input_channel = 0;
  int64_t tap = 1;
};

/// Fills packed.weight from `weight`.
void PackConvWeight(int threads, const void* weight, const ConvWeightStrides& strides,
                    int64_t in_channels, int64_t out_channels, const PackedConv& packed);

/// One run of the product.
struct ConvTask {
  ConvGeometry geometry;
  const void* input = nullptr;
  const PackedConv* weight = nullptr;
  int64_t out_channels = 0;
  /// Output phases: 1, or the stride of a transposed convolution. Position p yields the channels
  /// of `phases` consecutive output elements, and phase f uses the taps f, f + phases, ...; the
  /// geometry's kernel then counts the taps of one phase.
  int64_t phases = 1;
  /// Elements to drop from the front of each batch's result, and how many to keep.
  int64_t crop = 0;
  int64_t batch_elements = 0;
  void* output = nullptr;
  /// Null or as large as the output.
  const void* residual = nullptr;
  Activation activation = Activation::kNone;
};

/// How a task is cut up; a result element does not depend on it.
struct ConvBlocking {
  int64_t rows = 0;
  /// Read the input line by line; else gather patches.
  bool by_lines = false;
  /// Strips over all phases in one block.
  int64_t units = 0;
  int64_t row_blocks = 0;
  int64_t unit_blocks = 0;
  int64_t parts = 0;
  /// Scratch of one part.
  int64_t part_floats = 0;
  int64_t scratch_bytes() const { return parts * part_floats * int64_t{sizeof(float)}; }
};
ConvBlocking ChooseConvBlocking(const ConvTask& task, int threads);

/// Computes the output; `scratch` has blocking.scratch_bytes() bytes, aligned to 64.
void RunConv(const ConvTask& task, const ConvBlocking& blocking, void* scratch);

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_PACKED_CONV_H_
