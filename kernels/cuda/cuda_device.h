#ifndef LTX_KERNELS_CUDA_CUDA_DEVICE_H_
#define LTX_KERNELS_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/context.h"
#include "kernels/cuda/recording.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/device.h"

namespace ltx::cuda {

class BatchedProducts;
class CudnnAttention;
class LinearPlans;
struct ConvGatherTask;

struct CudaDeviceOptions {
  int ordinal = 0;
  /// Where memory comes from; null: the GPU. Must outlive the device.
  DeviceMemory* memory = nullptr;
};

/// The operations on an NVIDIA GPU: cuBLASLt for matrix products, cuDNN for attention and
/// convolutions where it is the faster, own kernels for the rest. Storage f32 or bf16, arithmetic
/// f32; products of f32 are true f32 (no TF32).
///
/// Operations are issued to a stream and return before it has got to them; Download, AllFinite and
/// Synchronize wait. A failure inside a kernel (INTERNAL) may therefore be reported by a later
/// call; the device is unusable from then on.
class CudaDevice final : public Device {
 public:
  /// FAILED_PRECONDITION if the GPU is too old; see kernels/device_factory.h for the checks before.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const CudaDeviceOptions& options);
  ~CudaDevice() override;

  CudaContext& context() { return *context_; }

  // cuda_device.cc
  std::string name() const override;
  std::string description() const override;
  DeviceProperties properties() const override;
  MemoryLedger& ledger() override;
  int64_t SystemAvailableBytes() const override;
  const OpScratch& op_scratch() const override;
  Preparation prepared() const override;

  // cuda_device_memory.cc
  absl::StatusOr<Tensor> Allocate(const Shape& shape, DType dtype, MemoryOwner owner) override;
  absl::Status Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) override;
  std::unique_ptr<Uploads> StartUploads() override;
  absl::Status Download(const Tensor& tensor, absl::Span<uint8_t> bytes) override;
  absl::Status Copy(const Tensor& from, Tensor* to) override;
  absl::Status Synchronize() override;
  absl::Status Concurrently(absl::FunctionRef<absl::Status()> first,
                            absl::FunctionRef<absl::Status()> second) override;
  bool can_record() const override { return true; }
  std::vector<int64_t> recording_segments() const override { return recorder_.segments(); }
  absl::StatusOr<std::unique_ptr<Recording>> Record(
      absl::FunctionRef<absl::Status()> work) override;
  absl::Status Replay(const Recording& recording) override;

  // cuda_device_linear.cc
  absl::StatusOr<bool> Improve() override;
  bool keeps_linear_operands() const override { return true; }
  absl::StatusOr<LinearWeight> PrepareLinear(const Tensor& weight, const Tensor& bias,
                                             MemoryOwner owner) override;
  absl::StatusOr<Tensor> Linear(const Tensor& x, const LinearWeight& weight,
                                const LinearOptions& options) override;

  // cuda_device_conv.cc
  absl::StatusOr<ConvWeight> PrepareConv(const Tensor& weight, const Tensor& bias,
                                         MemoryOwner owner) override;
  absl::StatusOr<Tensor> Conv(const Tensor& x, const ConvWeight& weight,
                              const ConvOptions& options) override;
  absl::StatusOr<ConvWeight> PrepareConvTranspose1d(const Tensor& weight, const Tensor& bias,
                                                    MemoryOwner owner) override;
  absl::StatusOr<Tensor> ConvTranspose1d(const Tensor& x, const ConvWeight& weight, int64_t stride,
                                         int64_t padding) override;

  // cuda_device_winograd.cc
  absl::StatusOr<Tensor> NormConv(Tensor x, const ConvWeight& weight, const ConvOptions& options,
                                  const NormConvOptions& around) override;

  // cuda_device_norm.cc
  absl::StatusOr<Tensor> RmsNorm(const Tensor& x, const Tensor& weight, float epsilon,
                                 bool one_plus_weight, Activation activation) override;
  absl::Status RmsNormInto(const Tensor& x, float epsilon, Columns* columns) override;
  absl::StatusOr<Tensor> LayerNormModulate(const Tensor& x, float epsilon, const RowVectors& scale,
                                           const RowVectors& shift) override;
  absl::StatusOr<Tensor> Modulate(const Tensor& x, const RowVectors& scale, const RowVectors& shift,
                                  Activation activation) override;
  absl::StatusOr<std::vector<Tensor>> ResidualNorm(Tensor* state, const ResidualUpdate& update,
                                                   float epsilon,
                                                   absl::Span<const NormReading> readings) override;
  absl::StatusOr<Tensor> GroupNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const GroupNormOptions& options) override;

  // cuda_device_attention.cc
  void PrepareAhead(absl::Span<const AttentionSize> sizes) override;
  absl::StatusOr<Tensor> NormRope(const Tensor& x, const NormRopeOptions& options) override;
  absl::Status NormRopeInPlace(absl::Span<const NormRopePart> parts) override;
  absl::StatusOr<Tensor> Rope(const Tensor& x, int64_t heads, const RopeTable& rope) override;
  absl::StatusOr<Tensor> Attention(const Columns& q, const Columns& k, const Columns& v,
                                   const AttentionOptions& options) override;
  absl::Status HeadGate(Tensor* x, const Columns& logits) override;

  // cuda_device_elementwise.cc
  absl::StatusOr<Tensor> Apply(const Tensor& x, Activation activation) override;
  absl::StatusOr<Tensor> LeakyRelu(const Tensor& x, float slope) override;
  absl::StatusOr<Tensor> Clamp(const Tensor& x, float low, float high) override;
  absl::StatusOr<Tensor> SoftCap(const Tensor& x, float cap) override;
  absl::StatusOr<Tensor> LogFloor(const Tensor& x, float floor) override;
  absl::StatusOr<Tensor> Magnitude(const Tensor& x) override;
  absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b) override;
  absl::StatusOr<Tensor> OuterSum(const Columns& a, const Tensor& b) override;
  absl::StatusOr<Tensor> GeluTanhMul(const Tensor& gate, const Tensor& up) override;
  absl::StatusOr<Tensor> Scale(const Tensor& x, float factor) override;
  absl::StatusOr<Tensor> ScaleShiftChannels(const Tensor& x, const Tensor& scale,
                                            const Tensor& shift) override;
  absl::StatusOr<Tensor> NormalizeChannels(const Tensor& x, const Tensor& mean,
                                           const Tensor& std) override;
  absl::StatusOr<Tensor> AddSpatialNoise(const Tensor& x, const Tensor& draw,
                                         const Tensor& channel_scale) override;

  // cuda_device_snake.cc
  absl::StatusOr<Tensor> AntiAliasedSnake(const Tensor& x, const Tensor& up, const Tensor& down,
                                          const Tensor& alpha, const Tensor& inverse_beta) override;

  // cuda_device_layout.cc
  absl::StatusOr<Tensor> Cast(const Tensor& x, DType dtype) override;
  absl::StatusOr<Tensor> Permute(const Tensor& x, absl::Span<const int> order) override;
  absl::StatusOr<Tensor> Slice(const Tensor& x, int axis, int64_t begin, int64_t end) override;
  absl::StatusOr<Tensor> Concat(absl::Span<const Tensor> parts, int axis) override;
  absl::StatusOr<Tensor> Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                             PadMode mode) override;
  absl::StatusOr<Tensor> GatherRows(const Tensor& table,
                                    absl::Span<const int32_t> indices) override;
  absl::StatusOr<Tensor> Interleave(absl::Span<const Tensor> parts) override;
  absl::StatusOr<Tensor> DepthToSpace(const Tensor& x, const std::array<int, 3>& factors,
                                      bool drop_first_frame) override;
  absl::StatusOr<Tensor> UpsampleNearest2x(const Tensor& x) override;
  absl::StatusOr<ByteFrames> ToByteFrames(const Tensor& frames, MemoryOwner owner) override;

  // cuda_device_diffusion.cc
  absl::StatusOr<Tensor> Lerp(const Tensor& a, const Tensor& b, float weight) override;
  absl::StatusOr<Tensor> LerpTokens(const Tensor& a, const Tensor& b,
                                    const Tensor& weights) override;
  absl::StatusOr<Tensor> VelocityToDenoised(const Tensor& latent, const Tensor& velocity,
                                            const Tensor& timesteps) override;
  absl::StatusOr<Tensor> BlendClean(const Tensor& denoised, const Tensor& clean,
                                    const Tensor& mask) override;
  absl::StatusOr<Tensor> EulerStep(const Tensor& x, const Tensor& denoised, float sigma,
                                   float sigma_next) override;
  absl::StatusOr<Tensor> LinearCombination(float a, const Tensor& x, float b, const Tensor& y,
                                           float c, const Tensor& z) override;
  absl::StatusOr<bool> AllFinite(const Tensor& x) override;

  // cuda_device_random.cc
  bool can_draw_philox() const override { return true; }
  absl::StatusOr<Tensor> PhiloxNormals(const PhiloxDraw& draw, DType dtype) override;

  // cuda_device_guidance.cc
  absl::StatusOr<Tensor> WeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) override;
  absl::StatusOr<Tensor> Guide(const Tensor& cond, const Tensor& uncond, const Tensor& perturbed,
                               const Tensor& isolated, const GuidanceScales& scales) override;
  absl::StatusOr<std::vector<double>> BatchDot(const Tensor& a, const Tensor& b) override;

 private:
  explicit CudaDevice(std::unique_ptr<CudaContext> context);

  // cuda_device_conv.cc
  absl::StatusOr<ConvWeight> PackConv(const Tensor& weight, const Tensor& bias, bool transposed,
                                      MemoryOwner owner);
  /// Chooses the kernel for a convolution over at least one position.
  absl::Status RunConv(const ConvGatherTask& task);

  // cuda_device_norm.cc
  absl::StatusOr<Tensor> ModulateRows(absl::string_view operation, const Tensor& x,
                                      const RowVectors& scale, const RowVectors& shift,
                                      RowNormTask::Statistic statistic, float epsilon,
                                      Activation activation);

  /// An activation with the shape and dtype of x.
  absl::StatusOr<Tensor> NewLike(const Tensor& x);
  /// `y` if the launches of `operation` went well.
  absl::StatusOr<Tensor> Launched(absl::string_view operation, Tensor y);

  const std::unique_ptr<CudaContext> context_;
  Recorder recorder_{context_.get()};
  const std::unique_ptr<LinearPlans> linear_plans_;
  const std::unique_ptr<BatchedProducts> batched_products_;
  std::unique_ptr<CudnnAttention> cudnn_attention_;
  std::unique_ptr<const OpScratch> op_scratch_;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_CUDA_DEVICE_H_
