#ifndef LTX_KERNELS_SHAPE_DEVICE_H_
#define LTX_KERNELS_SHAPE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "kernels/cuda/pool_lanes.h"
#include "kernels/device.h"
#include "kernels/shape_recorder.h"

namespace ltx {

/// What operations amount to, counted by ShapeDevice.
struct WorkCount {
  int64_t operations = 0;
  /// Multiply-adds of matrix products and convolutions.
  double products = 0;
  /// Multiply-adds of attention: scores and weighted values, masks not deducted.
  double attention = 0;
  /// Bytes of all results.
  double bytes = 0;

  WorkCount& operator+=(const WorkCount& other) {
    operations += other.operations;
    products += other.products;
    attention += other.attention;
    bytes += other.bytes;
    return *this;
  }
};

/// A device whose tensors have shapes but no elements. Model code runs on it unchanged: every
/// operation makes a result of the right shape and dtype and takes, for as long as it runs, the
/// scratch that the device it stands for would take. The ledger then tells what a computation would
/// need there, and work() what it would amount to, in microseconds per layer and without memory.
/// If the modelled device records, so does this one.
///
/// Contract: over the same computation the ledger's total peak is that of the modelled device, up
/// to scratch which only a library knows (a few parts in a thousand on the CPU);
/// tests/memory:projection_test holds it to 5 %.
///
/// Operands are trusted: the checks are those of real devices. Downloads leave the buffer as it is,
/// and everything is finite. Code that would compute elements on the host to upload them asks
/// holds_data() first.
class ShapeDevice : public Device {
 public:
  /// Stands for `modelled`, which must outlive it: same name, same scratch.
  explicit ShapeDevice(const Device* modelled) : modelled_(modelled) {}

  const WorkCount& work() const { return work_; }
  void ResetWork() { work_ = {}; }
  /// What the modelled device has not prepared by now is new again.
  void ForgetPrepared() {
    prepared_keys_.clear();
    new_attentions_.clear();
  }
  /// Attention that the modelled device has not prepared, each once, in order.
  const std::vector<AttentionSize>& new_attentions() const { return new_attentions_; }
  /// The modelled device holds so many bytes of recordings, in whose place new ones come: only what
  /// goes beyond is booked from now on. To be called while there are no recordings here.
  void AssumeRecordings(int64_t bytes) { recorder_.Assume(bytes, modelled_->recording_segments()); }

  std::string name() const override { return modelled_->name(); }
  std::string description() const override { return modelled_->description(); }
  DeviceProperties properties() const override { return modelled_->properties(); }
  MemoryLedger& ledger() override { return ledger_; }
  int64_t SystemAvailableBytes() const override { return modelled_->SystemAvailableBytes(); }
  const OpScratch& op_scratch() const override { return modelled_->op_scratch(); }
  bool holds_data() const override { return false; }
  /// What the modelled device would have to prepare for the operations so far, each thing once.
  Preparation prepared() const override { return prepared_; }

  absl::StatusOr<Tensor> Allocate(const Shape& shape, DType dtype, MemoryOwner owner) override;
  absl::Status Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) override;
  absl::Status Download(const Tensor& tensor, absl::Span<uint8_t> bytes) override;
  absl::Status Copy(const Tensor& from, Tensor* to) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
  /// In a recording the two take memory as two lanes do.
  absl::Status Concurrently(absl::FunctionRef<absl::Status()> first,
                            absl::FunctionRef<absl::Status()> second) override;
  bool can_record() const override { return modelled_->can_record(); }
  /// Books the memory of a recording; a replay counts as the work that was recorded.
  absl::StatusOr<std::unique_ptr<Recording>> Record(
      absl::FunctionRef<absl::Status()> work) override;
  absl::Status Replay(const Recording& recording) override;
  std::vector<int64_t> recording_segments() const override { return recorder_.segments(); }

  bool keeps_linear_operands() const override { return modelled_->keeps_linear_operands(); }
  absl::StatusOr<LinearWeight> PrepareLinear(const Tensor& weight, const Tensor& bias,
                                             MemoryOwner owner) override;
  absl::StatusOr<Tensor> Linear(const Tensor& x, const LinearWeight& weight,
                                const LinearOptions& options) override;
  absl::StatusOr<ConvWeight> PrepareConv(const Tensor& weight, const Tensor& bias,
                                         MemoryOwner owner) override;
  absl::StatusOr<Tensor> Conv(const Tensor& x, const ConvWeight& weight,
                              const ConvOptions& options) override;
  absl::StatusOr<Tensor> NormConv(Tensor x, const ConvWeight& weight, const ConvOptions& options,
                                  const NormConvOptions& around) override;
  absl::StatusOr<ConvWeight> PrepareConvTranspose1d(const Tensor& weight, const Tensor& bias,
                                                    MemoryOwner owner) override;
  absl::StatusOr<Tensor> ConvTranspose1d(const Tensor& x, const ConvWeight& weight, int64_t stride,
                                         int64_t padding) override;

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

  absl::StatusOr<Tensor> NormRope(const Tensor& x, const NormRopeOptions& options) override;
  absl::Status NormRopeInPlace(absl::Span<const NormRopePart> parts) override;
  absl::StatusOr<Tensor> Rope(const Tensor& x, int64_t heads, const RopeTable& rope) override;
  absl::StatusOr<Tensor> Attention(const Columns& q, const Columns& k, const Columns& v,
                                   const AttentionOptions& options) override;
  absl::Status HeadGate(Tensor* x, const Columns& logits) override;

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
  absl::StatusOr<Tensor> AntiAliasedSnake(const Tensor& x, const Tensor& up, const Tensor& down,
                                          const Tensor& alpha, const Tensor& inverse_beta) override;

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
  absl::StatusOr<Tensor> WeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) override;
  absl::StatusOr<Tensor> Guide(const Tensor& cond, const Tensor& uncond, const Tensor& perturbed,
                               const Tensor& isolated, const GuidanceScales& scales) override;
  absl::StatusOr<std::vector<double>> BatchDot(const Tensor& a, const Tensor& b) override;
  absl::StatusOr<bool> AllFinite(const Tensor& x) override;

 private:
  /// A convolution's sizes and the shape of its result.
  struct PlacedConv {
    ConvSize size;
    Shape shape;
  };
  static absl::StatusOr<PlacedConv> PlaceConv(const Tensor& x, const ConvWeight& weight,
                                              const ConvOptions& options);
  /// The result of one operation, which takes `scratch` while it runs.
  absl::StatusOr<Tensor> Result(const Shape& shape, DType dtype, const ScratchBlocks& scratch = {});
  /// The same with memory that is there.
  absl::StatusOr<Tensor> Counted(Tensor result, const ScratchBlocks& scratch);
  absl::StatusOr<Tensor> Like(const Tensor& x) { return Result(x.shape(), x.dtype()); }

  const Device* const modelled_;
  MemoryLedger ledger_;
  ShapeRecorder recorder_{&ledger_};
  /// What goes with a request comes from here while something is recorded.
  std::shared_ptr<cuda::MemoryPool> recording_pool_;
  cuda::PoolLanes lanes_;
  WorkCount work_;
  absl::flat_hash_set<uint64_t> prepared_keys_;
  Preparation prepared_;
  std::vector<AttentionSize> new_attentions_;
};

}  // namespace ltx

#endif  // LTX_KERNELS_SHAPE_DEVICE_H_
