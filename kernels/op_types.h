#ifndef LTX_KERNELS_OP_TYPES_H_
#define LTX_KERNELS_OP_TYPES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/op_enums.h"
#include "kernels/tensor.h"

namespace ltx {

/// Operands and options of the operations in kernels/device.h.

/// Columns [begin, begin + width) of the last axis of a tensor: how an operation reads or changes a
/// part of a fused matrix product (q | k | v | ...) where it lies. A tensor stands for all of its
/// columns.
struct Columns {
  Columns() = default;
  Columns(const Tensor& whole)  // NOLINT(google-explicit-constructor): see above.
      : tensor(whole), width(whole.rank() > 0 ? whole.dim(-1) : 0) {}
  Columns(Tensor of, int64_t first, int64_t count)
      : tensor(std::move(of)), begin(first), width(count) {}

  bool defined() const { return tensor.defined(); }
  /// Elements from one row to the next.
  int64_t pitch() const { return tensor.dim(-1); }
  /// The shape of a copy of these columns.
  Shape shape() const {
    Shape shape = tensor.shape();
    shape.set_dim(-1, width);
    return shape;
  }
  /// The first element of the first row.
  template <typename T>
  T* data() const {
    return tensor.data<T>() + begin;
  }

  Tensor tensor;
  int64_t begin = 0;
  int64_t width = 0;
};

/// Weights in the form a device wants them: packed, concatenated, or as they were. Made once at
/// load by Device::Prepare*, then only read.
class PreparedWeight {
 public:
  virtual ~PreparedWeight() = default;
};

/// y = x W^T + b with W [out_features, in_features].
struct LinearWeight {
  std::shared_ptr<const PreparedWeight> prepared;
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool defined() const { return prepared != nullptr; }
};

/// A convolution over one to three axes, channels last, cross-correlation.
struct ConvWeight {
  std::shared_ptr<const PreparedWeight> prepared;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  /// Kernel extents, one per spatial axis in the tensor's order ([T, H, W], [H, W] or [T]).
  Shape kernel;
  bool defined() const { return prepared != nullptr; }
};

struct AxisGeometry {
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_before = 0;
  int64_t pad_after = 0;
  /// kReflect does not repeat the edge element and needs an extent above the padding.
  PadMode pad_mode = PadMode::kZeros;
};

struct ConvOptions {
  /// One entry per spatial axis of the input, the rest unused.
  std::array<AxisGeometry, 3> axes{};
  /// Added to the result before the activation (same shape as the result), if defined.
  Tensor residual;
  Activation activation = Activation::kNone;
};

/// What Device::NormConv does around a convolution.
struct NormConvOptions {
  /// act(x * rsqrt(mean over channels of x^2 + epsilon)) goes in, in place of x.
  struct Norm {
    float epsilon = 0.0f;
    Activation activation = Activation::kNone;
  };
  std::optional<Norm> norm;
  /// Factors over [T, H, W] by which channels of the result move to positions, as DepthToSpace does
  /// it; all 1: none.
  std::array<int, 3> depth_to_space = {1, 1, 1};
  bool drop_first_frame = false;
  /// Where the result goes, if defined: memory of its shape and dtype that nothing else reads or
  /// writes, but for the convolution's residual, which it may be.
  Tensor into;
};

struct LinearOptions {
  Activation activation = Activation::kNone;
};

/// One vector per token, stored once per distinct value: token t uses columns
/// [offset, offset + D) of row index[t]. With an undefined index every token of batch b uses row b
/// if there are as many rows as batches, or row 0 if there is a single row.
struct RowVectors {
  Tensor rows;   ///< [U, W], the dtype of the tensor it modulates.
  Tensor index;  ///< i32 [B * N] or undefined.
  int64_t offset = 0;
};

/// What ResidualNorm adds to a state [B, N, D] before it norms it.
struct ResidualUpdate {
  /// [C, N, D], for the batch rows [first_batch, first_batch + C); undefined: nothing.
  Tensor value;
  /// A factor on it, per token of `value`; undefined rows: 1.
  RowVectors gate;
  int64_t first_batch = 0;
};

/// One reading of a state: rms(state) * (1 + scale) + shift per token, or rms(state) alone where
/// scale and shift are undefined.
struct NormReading {
  RowVectors scale;
  RowVectors shift;
};

/// Rotary tables.
struct RopeTable {
  enum class Kind : uint8_t {
    /// Inside a head of width d: pairs (j, j + d/2). Tables [1 or B, 1 or H, N, d/2].
    kSplit,
    /// Over the full width D: pairs (2j, 2j + 1). Tables [1 or B, N, D], each value held twice.
    kInterleaved,
  };
  Kind kind = Kind::kSplit;
  Tensor cos;
  Tensor sin;
  bool defined() const { return cos.defined(); }
};

/// What NormRope does before it rotates.
struct NormRopeOptions {
  enum class Span : uint8_t {
    /// One RMS over all heads; weight [D].
    kFullWidth,
    /// One RMS per head; weight [d], shared by the heads.
    kPerHead,
  };
  int64_t heads = 1;
  Span span = Span::kFullWidth;
  /// Undefined: no weight.
  Tensor weight;
  /// Multiply by (1 + weight) instead of weight.
  bool one_plus_weight = false;
  float epsilon = 1e-6f;
  /// Undefined tables: no rotation.
  RopeTable rope;
};

/// Queries or keys that NormRopeInPlace changes: columns of a tensor [B, N, W].
struct NormRopePart {
  Columns x;
  NormRopeOptions options;
};

struct AttentionOptions {
  int64_t heads = 1;
  /// Query head h reads key/value head h / (heads / kv_heads).
  int64_t kv_heads = 1;
  float scale = 1.0f;
  /// Key j is visible to query i only if j <= i (equal lengths).
  bool causal = false;
  /// If > 0: key j is visible only if j > i - window.
  int64_t window = 0;
  /// u8 [B, Nk], 0 hides the key; undefined: all visible. A query that sees no key yields zeros.
  Tensor key_mask;
  /// f32 [B or 1, 1, Nq or 1, Nk], added to the scaled scores; undefined: none.
  Tensor bias;
};

/// One term of Device::WeightedSum.
struct WeightedTerm {
  /// [B, T, C] of f32, bf16 or f64.
  Tensor x;
  /// On the host: one weight for all tokens, or one per token [B * T].
  std::vector<double> weights;
};
/// The widest sum any sampler needs: state, two predictions, noise, and what a token is pulled to.
inline constexpr int kMaxWeightedTerms = 5;

/// How far guidance pushes a prediction away from those of the other passes of a step, and how much
/// of the push's change of contrast is taken back. The defaults change nothing.
struct GuidanceScales {
  /// Away from the prediction for the negative prompt: (cfg - 1) (cond - uncond).
  float cfg = 1.0f;
  /// Away from the one with perturbed self-attention: stg (cond - perturbed).
  float stg = 0.0f;
  /// Away from the one without the other modality: (modality - 1) (cond - isolated).
  float modality = 1.0f;
  /// 0 leaves the result as it is, 1 gives it the standard deviation of cond.
  float rescale = 0.0f;
};

struct GroupNormOptions {
  int64_t groups = 32;
  float epsilon = 1e-6f;
  Activation activation = Activation::kNone;
};

/// Frames in the forms that files are made of, both U8.
struct ByteFrames {
  /// [F, H, W, 3].
  Tensor rgb;
  /// [F, H * 3/2, W]: of each frame the planes Y, then Cb and Cr (BT.709 limited, chroma by the
  /// plain mean of 2 x 2 pixels): what encoders take.
  Tensor i420;
};

/// One draw of PyTorch's CUDA generator (Philox4x32-10 and cuRAND's Box-Muller transform).
struct PhiloxDraw {
  uint64_t seed = 0;
  /// Of the stream, a multiple of 4.
  uint64_t offset = 0;
  int64_t count = 0;
  /// Of the GPU that the stream stands for: together they bound PyTorch's grid, which decides the
  /// order of elements.
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;
};

}  // namespace ltx

#endif  // LTX_KERNELS_OP_TYPES_H_
