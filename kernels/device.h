#ifndef LTX_KERNELS_DEVICE_H_
#define LTX_KERNELS_DEVICE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/memory_ledger.h"
#include "kernels/op_scratch.h"
#include "kernels/op_types.h"
#include "kernels/preparation.h"
#include "kernels/tensor.h"
#include "kernels/uploads.h"

namespace ltx {

/// What callers want to know of the hardware.
struct DeviceProperties {
  bool is_gpu = false;
  /// CPU threads of one operation; 0 on a GPU.
  int threads = 0;
  /// All memory of a GPU, whoever has it; 0 on a CPU.
  int64_t memory_bytes = 0;
  /// Of a GPU: generators that draw as a GPU's stream does depend on them.
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
};

/// What Device::Record took down.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Device::Improve has found a faster way for some of it since: recorded anew, it would have it.
  /// Any thread may ask.
  virtual bool outdated() const { return false; }
};

/// A place where tensors live and operations run. Model code is written once against this class.
///
/// Conventions, unless an operation says otherwise:
///  * tensors are contiguous, f32 or bf16, all float operands of one call share a dtype, and the
///    result has it; arithmetic is f32 inside with one rounding at the end;
///  * sequences are [B, N, D], heads are consecutive slices of D; images, volumes and signals are
///    channels-last: [B, T, H, W, C], [B, H, W, C], [B, T, C];
///  * zero-sized operands are legal and give zero-sized results; a sum over nothing is zero (so a
///    linear with in_features 0 yields its bias);
///  * results are new tensors owned by kActivations; scratch is kWorkspace; an operand passed by
///    pointer, and the parts of NormRopeInPlace, are changed in place: no one else may read them.
///
/// Errors: RESOURCE_EXHAUSTED with owner, need and live bytes when memory is not to be had (the
/// device stays usable); INTERNAL for operands that do not fit together, which is a defect of the
/// caller; UNIMPLEMENTED for a dtype or option the device lacks. Never a silent fallback.
///
/// Thread-compatible: one thread at a time issues operations. The ledger may be read by any thread.
class Device {
 public:
  virtual ~Device() = default;

  /// "cpu" or "cuda:0".
  virtual std::string name() const = 0;
  /// What the hardware calls itself, for Health and reports.
  virtual std::string description() const = 0;
  virtual DeviceProperties properties() const = 0;
  virtual MemoryLedger& ledger() = 0;
  /// Free memory of the machine or card, everybody's use included; 0 if it is not to be had. Never
  /// a measure of this process. Any thread may ask.
  virtual int64_t SystemAvailableBytes() const = 0;
  /// What operations take as kWorkspace while they run, and prepare when they come first, for
  /// projections.
  virtual const OpScratch& op_scratch() const { return NoOpScratch(); }
  /// All that operations have prepared so far.
  virtual Preparation prepared() const { return {}; }
  /// False for a device whose tensors have shapes but no elements (kernels/shape_device.h): then
  /// nobody needs to compute what would be uploaded.
  virtual bool holds_data() const { return true; }

  // --- Memory -------------------------------------------------------------------------------

  /// Uninitialised memory.
  virtual absl::StatusOr<Tensor> Allocate(const Shape& shape, DType dtype, MemoryOwner owner) = 0;
  /// Copies `bytes` (tensor-sized, any alignment) into `tensor`.
  virtual absl::Status Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) = 0;
  /// For many tensors in a row: their bytes may be on their way at the same time. Here one after
  /// the other.
  virtual std::unique_ptr<Uploads> StartUploads();
  /// Copies `tensor` out to `bytes` (tensor-sized); completes all work before it.
  virtual absl::Status Download(const Tensor& tensor, absl::Span<uint8_t> bytes) = 0;
  /// Overwrites *to with `from`; same shape and dtype.
  virtual absl::Status Copy(const Tensor& from, Tensor* to) = 0;
  /// Waits for all issued work and reports a deferred failure.
  virtual absl::Status Synchronize() = 0;

  // --- Order ----------------------------------------------------------------------------------

  /// Runs both functions, and where the device can, the work that they issue beside each other:
  /// small operations of the one then fill gaps of the other. Neither may read what the other makes
  /// or changes. Calls do not nest.
  virtual absl::Status Concurrently(absl::FunctionRef<absl::Status()> first,
                                    absl::FunctionRef<absl::Status()> second) {
    if (absl::Status status = first(); !status.ok()) return status;
    return second();
  }

  /// Whether Record works.
  virtual bool can_record() const { return false; }
  /// Takes down the operations that `work` issues, without running them, for Replay to run at a
  /// fraction of the cost of issuing them. They work on the same memory each time: tensors from
  /// outside `work` must be there at every replay, with whatever they hold by then; those made by
  /// it are there as long as the recording, and the next replay of any recording of this device may
  /// overwrite them. `work` must not upload, download or wait. UNIMPLEMENTED where can_record() is
  /// false.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(absl::FunctionRef<absl::Status()> work);
  virtual absl::Status Replay(const Recording& recording);
  /// Bytes of each segment of memory that the recordings there are share, for telling what another
  /// one would add. Any thread may ask.
  virtual std::vector<int64_t> recording_segments() const { return {}; }

  /// Begins to prepare, beside whatever else goes on, what attention of these sizes needs before it
  /// can run, in this order. An operation that comes too early waits for it. Any thread may call.
  virtual void PrepareAhead(absl::Span<const AttentionSize> /*sizes*/) {}
  /// Spends time that nobody waits for on making later operations faster, by trying what their
  /// first use put off: one step, of milliseconds to a few tenths of a second, on an idle device.
  /// False if nothing is left to try. Results stay the same to the bit.
  virtual absl::StatusOr<bool> Improve() { return false; }
  /// The same until nothing is left.
  absl::Status ImproveAll();

  // --- Matrix products and convolutions -------------------------------------------------------

  /// Whether PrepareLinear keeps its operands as they are instead of copies.
  virtual bool keeps_linear_operands() const { return false; }
  /// `weight` [N, K] f32 or bf16, `bias` [N] of the same dtype or undefined. The arguments may be
  /// released afterwards. Where keeps_linear_operands() is true they are not copied: allocate them
  /// for `owner`, and do not change them any more.
  virtual absl::StatusOr<LinearWeight> PrepareLinear(const Tensor& weight, const Tensor& bias,
                                                     MemoryOwner owner) = 0;
  /// x [..., K] -> [..., N]; x must have the weight's dtype.
  virtual absl::StatusOr<Tensor> Linear(const Tensor& x, const LinearWeight& weight,
                                        const LinearOptions& options = {}) = 0;

  /// `weight` in checkpoint order [N, C, spatial...] with one to three spatial axes, `bias` [N] or
  /// undefined.
  virtual absl::StatusOr<ConvWeight> PrepareConv(const Tensor& weight, const Tensor& bias,
                                                 MemoryOwner owner) = 0;
  /// x [B, spatial..., C] -> [B, spatial'..., N],
  /// spatial' = (extent + pads - dilation (k - 1) - 1) / stride + 1.
  virtual absl::StatusOr<Tensor> Conv(const Tensor& x, const ConvWeight& weight,
                                      const ConvOptions& options) = 0;

  /// Conv of x or, as `around` says, of its norm, then depth-to-space: what a convolutional decoder
  /// is made of, for devices that do better than one operation after the other. bf16 results may
  /// differ from those of the single operations: intermediate values need not be rounded, and sums
  /// may be formed otherwise. x [B, T, H, W, C] is released as soon as it has been read.
  virtual absl::StatusOr<Tensor> NormConv(Tensor x, const ConvWeight& weight,
                                          const ConvOptions& options,
                                          const NormConvOptions& around);

  /// `weight` in checkpoint order of a transposed convolution: [C, N, k].
  virtual absl::StatusOr<ConvWeight> PrepareConvTranspose1d(const Tensor& weight,
                                                            const Tensor& bias,
                                                            MemoryOwner owner) = 0;
  /// x [B, T, C] -> [B, (T - 1) stride - 2 padding + k, N]; empty if that is not positive.
  virtual absl::StatusOr<Tensor> ConvTranspose1d(const Tensor& x, const ConvWeight& weight,
                                                 int64_t stride, int64_t padding) = 0;

  // --- Normalisation and modulation -----------------------------------------------------------

  /// act(x * rsqrt(mean over the last axis of x^2 + epsilon) * w); `weight` [D] or undefined for
  /// none, (1 + w) instead of w if `one_plus_weight`. Over channels-last data this is the VAEs'
  /// pixel norm.
  virtual absl::StatusOr<Tensor> RmsNorm(const Tensor& x, const Tensor& weight, float epsilon,
                                         bool one_plus_weight = false,
                                         Activation activation = Activation::kNone) = 0;
  /// RmsNorm of x [..., D] without a weight, into *columns [..., D]: for rows that are put together
  /// part by part.
  virtual absl::Status RmsNormInto(const Tensor& x, float epsilon, Columns* columns) = 0;
  /// LayerNorm(x) * (1 + scale) + shift per token, mean subtracted, no affine; x [B, N, D].
  virtual absl::StatusOr<Tensor> LayerNormModulate(const Tensor& x, float epsilon,
                                                   const RowVectors& scale,
                                                   const RowVectors& shift) = 0;
  /// act(x * (1 + scale) + shift) per token; x [B, N, D].
  virtual absl::StatusOr<Tensor> Modulate(const Tensor& x, const RowVectors& scale,
                                          const RowVectors& shift,
                                          Activation activation = Activation::kNone) = 0;
  /// One pass over a residual stream: adds `update` to *state [B, N, D] in place, rounded to its
  /// dtype, and returns one tensor like *state per reading of the sum.
  virtual absl::StatusOr<std::vector<Tensor>> ResidualNorm(
      Tensor* state, const ResidualUpdate& update, float epsilon,
      absl::Span<const NormReading> readings) = 0;
  /// act(group norm): statistics over the channels of a group and all spatial positions of a batch
  /// row; x [B, spatial..., C], weight and bias [C].
  virtual absl::StatusOr<Tensor> GroupNorm(const Tensor& x, const Tensor& weight,
                                           const Tensor& bias, const GroupNormOptions& options) = 0;

  // --- Attention ------------------------------------------------------------------------------

  /// RMS-normalises x [B, N, heads * d] as the options say, then rotates it.
  virtual absl::StatusOr<Tensor> NormRope(const Tensor& x, const NormRopeOptions& options) = 0;
  /// NormRope of every part in place, at best in one pass. Parts must not overlap.
  virtual absl::Status NormRopeInPlace(absl::Span<const NormRopePart> parts) = 0;
  /// Rotates only.
  virtual absl::StatusOr<Tensor> Rope(const Tensor& x, int64_t heads, const RopeTable& rope) = 0;
  /// softmax(q k^T * scale + bias) v. q [B, Nq, heads * d], k [B, Nk, kv_heads * d],
  /// v [B, Nk, kv_heads * dv] -> [B, Nq, heads * dv]. Never holds an Nq x Nk matrix.
  virtual absl::StatusOr<Tensor> Attention(const Columns& q, const Columns& k, const Columns& v,
                                           const AttentionOptions& options) = 0;
  /// *x becomes x_head * 2 * sigmoid(logits_head), in place; x [B, N, heads * d], logits
  /// [B, N, heads].
  virtual absl::Status HeadGate(Tensor* x, const Columns& logits) = 0;

  // --- Elementwise ----------------------------------------------------------------------------

  virtual absl::StatusOr<Tensor> Apply(const Tensor& x, Activation activation) = 0;
  /// x if x > 0, else slope * x.
  virtual absl::StatusOr<Tensor> LeakyRelu(const Tensor& x, float slope) = 0;
  virtual absl::StatusOr<Tensor> Clamp(const Tensor& x, float low, float high) = 0;
  /// cap * tanh(x / cap).
  virtual absl::StatusOr<Tensor> SoftCap(const Tensor& x, float cap) = 0;
  /// ln(max(x, floor)).
  virtual absl::StatusOr<Tensor> LogFloor(const Tensor& x, float floor) = 0;
  /// x [..., 2K], real parts then imaginary parts -> magnitudes [..., K].
  virtual absl::StatusOr<Tensor> Magnitude(const Tensor& x) = 0;
  /// Same shapes.
  virtual absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b) = 0;
  /// a [L, W], b [U, W] -> a_l + b_u [L, U, W].
  virtual absl::StatusOr<Tensor> OuterSum(const Columns& a, const Tensor& b) = 0;
  /// Same shapes; gelu_tanh(gate), rounded, times up.
  virtual absl::StatusOr<Tensor> GeluTanhMul(const Tensor& gate, const Tensor& up) = 0;
  /// factor * x.
  virtual absl::StatusOr<Tensor> Scale(const Tensor& x, float factor) = 0;
  /// x * scale + shift along the last axis; scale and shift [C], either may be undefined.
  virtual absl::StatusOr<Tensor> ScaleShiftChannels(const Tensor& x, const Tensor& scale,
                                                    const Tensor& shift) = 0;
  /// (x - mean) / std along the last axis; mean and std [C].
  virtual absl::StatusOr<Tensor> NormalizeChannels(const Tensor& x, const Tensor& mean,
                                                   const Tensor& std) = 0;
  /// x + draw[h, w] * channel_scale[c]: x [B, T, H, W, C], draw [H, W], channel_scale [C].
  virtual absl::StatusOr<Tensor> AddSpatialNoise(const Tensor& x, const Tensor& draw,
                                                 const Tensor& channel_scale) = 0;
  /// Anti-aliased snake activation of the vocoder: x2 up-sampling with `up` [12], then
  /// u + sin^2(alpha_c u) * inverse_beta_c, then x2 down-sampling with `down` [12]; edges
  /// replicate (the activated signal's on the way down). x [B, T, C] f32; alpha, inverse_beta [C].
  virtual absl::StatusOr<Tensor> AntiAliasedSnake(const Tensor& x, const Tensor& up,
                                                  const Tensor& down, const Tensor& alpha,
                                                  const Tensor& inverse_beta) = 0;

  // --- Layout ---------------------------------------------------------------------------------

  virtual absl::StatusOr<Tensor> Cast(const Tensor& x, DType dtype) = 0;
  /// Axis i of the result is axis order[i] of x. Any dtype.
  virtual absl::StatusOr<Tensor> Permute(const Tensor& x, absl::Span<const int> order) = 0;
  /// Copies [begin, end) of `axis`. Any dtype.
  virtual absl::StatusOr<Tensor> Slice(const Tensor& x, int axis, int64_t begin, int64_t end) = 0;
  /// Joins along `axis`. Any dtype, at least one part.
  virtual absl::StatusOr<Tensor> Concat(absl::Span<const Tensor> parts, int axis) = 0;
  /// Extends `axis` by elements in front and behind.
  virtual absl::StatusOr<Tensor> Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                                     PadMode mode) = 0;
  /// rows[i] = table[indices[i]]; table [V, D] of any dtype, indices on the host, each in [0, V).
  virtual absl::StatusOr<Tensor> GatherRows(const Tensor& table,
                                            absl::Span<const int32_t> indices) = 0;
  /// L tensors [..., D] -> [..., D * L], element-major: out[..., d * L + l] = x_l[..., d].
  virtual absl::StatusOr<Tensor> Interleave(absl::Span<const Tensor> parts) = 0;
  /// [B, T, H, W, C p1 p2 p3] -> [B, T p1, H p2, W p3, C], input channel
  /// ((c p1 + i1) p2 + i2) p3 + i3; `drop_first_frame` leaves out output frame 0.
  virtual absl::StatusOr<Tensor> DepthToSpace(const Tensor& x, const std::array<int, 3>& factors,
                                              bool drop_first_frame) = 0;
  /// Nearest-neighbour x2 on both spatial axes of [B, H, W, C].
  virtual absl::StatusOr<Tensor> UpsampleNearest2x(const Tensor& x) = 0;
  /// Frames f32 [F, H, W, 3] in [0, 1] (others are clamped, NaN is 0) in eight bits, by truncation;
  /// H and W even. The same bits on every device.
  virtual absl::StatusOr<ByteFrames> ToByteFrames(const Tensor& frames, MemoryOwner owner) = 0;

  // --- Diffusion state ------------------------------------------------------------------------
  // Latents are [B, T, C]; masks and timesteps are f32 [B, T] tensors. Formulas are evaluated in
  // f32 as written and rounded once.

  /// a + w (b - a) for |w| < 0.5, else b - (b - a)(1 - w).
  virtual absl::StatusOr<Tensor> Lerp(const Tensor& a, const Tensor& b, float weight) = 0;
  /// The same with one weight per token: weights f32 [B, T].
  virtual absl::StatusOr<Tensor> LerpTokens(const Tensor& a, const Tensor& b,
                                            const Tensor& weights) = 0;
  /// latent - velocity * timestep.
  virtual absl::StatusOr<Tensor> VelocityToDenoised(const Tensor& latent, const Tensor& velocity,
                                                    const Tensor& timesteps) = 0;
  /// denoised * mask + clean * (1 - mask).
  virtual absl::StatusOr<Tensor> BlendClean(const Tensor& denoised, const Tensor& clean,
                                            const Tensor& mask) = 0;
  /// v = (x - denoised) / sigma rounded to x's dtype; x + v * (sigma_next - sigma).
  virtual absl::StatusOr<Tensor> EulerStep(const Tensor& x, const Tensor& denoised, float sigma,
                                           float sigma_next) = 0;
  /// (a x + b y) + c z; z may be undefined. a x, b y and c z each round to f32.
  virtual absl::StatusOr<Tensor> LinearCombination(float a, const Tensor& x, float b,
                                                   const Tensor& y, float c, const Tensor& z) = 0;
  /// Sum over the terms of weight * x, evaluated in f64 in their order, whatever the terms' dtypes,
  /// and rounded once to `dtype` (f32, bf16 or f64). 1 to kMaxWeightedTerms terms of one shape. For
  /// samplers that subtract nearly equal states.
  virtual absl::StatusOr<Tensor> WeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) = 0;
  /// Guidance in one pass over the predictions (reference: guiders.py:MultiModalGuider.calculate):
  ///   y = cond + (cfg - 1)(cond - uncond) + stg (cond - perturbed) + (modality - 1)(cond -
  ///   isolated)
  /// left to right in f32; an undefined prediction contributes nothing. With rescale != 0, y is
  /// multiplied by rescale * std(cond) / std(y) + (1 - rescale), the unbiased standard deviations
  /// over all elements of a batch row. The sums behind them do not depend on threads or timing.
  virtual absl::StatusOr<Tensor> Guide(const Tensor& cond, const Tensor& uncond,
                                       const Tensor& perturbed, const Tensor& isolated,
                                       const GuidanceScales& scales) = 0;
  /// <a_b, b_b> of each batch row over all its elements, summed in f64. Waits for the device.
  virtual absl::StatusOr<std::vector<double>> BatchDot(const Tensor& a, const Tensor& b) = 0;
  /// True if every element is finite. Waits for the device.
  virtual absl::StatusOr<bool> AllFinite(const Tensor& x) = 0;

  // --- Random numbers -------------------------------------------------------------------------

  /// Whether PhiloxNormals works.
  virtual bool can_draw_philox() const { return false; }
  /// The standard normals [count] that PyTorch's CUDA generator draws in one call, to the bit if
  /// this GPU is of the kind that the draw names; f32 or f64. UNIMPLEMENTED where can_draw_philox()
  /// is false: no CPU has the intrinsics that the bits come from.
  virtual absl::StatusOr<Tensor> PhiloxNormals(const PhiloxDraw& draw, DType dtype);
};

inline absl::Status Device::ImproveAll() {
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = Improve();
  return more.status();
}

inline absl::StatusOr<std::unique_ptr<Recording>> Device::Record(
    absl::FunctionRef<absl::Status()> /*work*/) {
  return absl::UnimplementedError("this device records nothing");
}
inline absl::StatusOr<Tensor> Device::PhiloxNormals(const PhiloxDraw& /*draw*/, DType /*dtype*/) {
  return absl::UnimplementedError("this device has no Philox generator");
}

inline absl::Status Device::Replay(const Recording& /*recording*/) {
  return absl::UnimplementedError("this device records nothing");
}

}  // namespace ltx

#endif  // LTX_KERNELS_DEVICE_H_
