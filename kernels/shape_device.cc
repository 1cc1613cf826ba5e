#include "kernels/shape_device.h"

#include <memory>
#include <optional>
#include <utility>

#include "kernels/allocation.h"
#include "kernels/conv_geometry.h"
#include "kernels/layout_shapes.h"
#include "kernels/status_macros.h"

namespace ltx {
namespace {

/// A block that exists in the books alone.
class BookedStorage final : public Storage {
 public:
  BookedStorage(int64_t bytes, MemoryOwner owner, MemoryLedger* ledger)
      : Storage(nullptr, bytes, /*host_accessible=*/false), owner_(owner), ledger_(ledger) {
    if (bytes > 0) ledger_->Add(owner_, bytes);
  }
  ~BookedStorage() override {
    if (bytes() > 0) ledger_->Remove(owner_, bytes());
  }

 private:
  const MemoryOwner owner_;
  MemoryLedger* const ledger_;
};

/// A block that a recording keeps for as long as it is there itself.
class RecordedStorage final : public Storage {
 public:
  RecordedStorage(void* block, int64_t bytes, std::shared_ptr<cuda::MemoryPool> pool,
                  cuda::PoolLanes* lanes)
      : Storage(nullptr, bytes, /*host_accessible=*/false),
        block_(block),
        pool_(std::move(pool)),
        lanes_(lanes),
        section_(lanes->section()) {}
  ~RecordedStorage() override { lanes_->Give(pool_, block_, section_); }

 private:
  void* const block_;
  const std::shared_ptr<cuda::MemoryPool> pool_;
  cuda::PoolLanes* const lanes_;
  const uint64_t section_;
};

/// What else a recording reads or leaves behind.
class RecorderStorage final : public Storage {
 public:
  RecorderStorage(int64_t bytes, ShapeRecorder* recorder)
      : Storage(nullptr, bytes, /*host_accessible=*/false), recorder_(recorder) {
    recorder_->Add(bytes);
  }
  ~RecorderStorage() override { recorder_->Add(-bytes()); }

 private:
  ShapeRecorder* const recorder_;
};

class ShapeRecording final : public Recording {
 public:
  ShapeRecording(const WorkCount& work, std::shared_ptr<cuda::MemoryPool> pool)
      : work_(work), pool_(std::move(pool)) {}
  const WorkCount& work() const { return work_; }

 private:
  const WorkCount work_;
  const std::shared_ptr<cuda::MemoryPool> pool_;
};

/// Weights as the device keeps them: as they came, or an unpacked copy with the bias in f32.
class BookedWeight final : public PreparedWeight {
 public:
  BookedWeight(Tensor weight, Tensor bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}
  bool has_bias() const { return bias_.defined(); }

 private:
  const Tensor weight_;
  const Tensor bias_;
};

absl::StatusOr<std::shared_ptr<const PreparedWeight>> Book(Device& device, const Tensor& weight,
                                                           const Tensor& bias, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(Tensor kept, device.Allocate(weight.shape(), weight.dtype(), owner));
  Tensor kept_bias;
  if (bias.defined()) {
    LTX_ASSIGN_OR_RETURN(kept_bias, device.Allocate(bias.shape(), DType::kF32, owner));
  }
  return std::make_shared<BookedWeight>(std::move(kept), std::move(kept_bias));
}

/// Multiply-adds of a convolution in its direct form.
double ProductsOf(const ConvSize& size, const ConvWeight& weight) {
  return static_cast<double>(size.positions()) *
         static_cast<double>(weight.kernel.num_elements() * size.in_channels * size.out_channels);
}

}  // namespace

absl::StatusOr<Tensor> ShapeDevice::Allocate(const Shape& shape, DType dtype, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(shape, dtype));
  std::shared_ptr<Storage> storage;
  if (owner == MemoryOwner::kRecordings) {
    storage = std::make_shared<RecorderStorage>(bytes, &recorder_);
  } else if (recording_pool_ != nullptr && GoesWithRequest(owner) && bytes > 0) {
    LTX_ASSIGN_OR_RETURN(void* const block, recording_pool_->Take(bytes, lanes_.lane()));
    storage = std::make_shared<RecordedStorage>(block, bytes, recording_pool_, &lanes_);
  } else {
    storage = std::make_shared<BookedStorage>(bytes, owner, &ledger_);
  }
  return Tensor(std::move(storage), 0, shape, dtype);
}

absl::Status ShapeDevice::Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) {
  return CheckTransfer("upload", tensor, bytes.size());
}

absl::Status ShapeDevice::Download(const Tensor& tensor, absl::Span<uint8_t> bytes) {
  return CheckTransfer("download", tensor, bytes.size());
}

absl::Status ShapeDevice::Copy(const Tensor& from, Tensor* to) { return CheckCopy(from, *to); }

absl::StatusOr<Tensor> ShapeDevice::Result(const Shape& shape, DType dtype,
                                           const ScratchBlocks& scratch) {
  // Results come first, as on the devices, so that both count at once.
  LTX_ASSIGN_OR_RETURN(Tensor result, Allocate(shape, dtype, MemoryOwner::kActivations));
  return Counted(std::move(result), scratch);
}

absl::StatusOr<Tensor> ShapeDevice::Counted(Tensor result, const ScratchBlocks& scratch) {
  std::vector<Tensor> held;
  for (const int64_t bytes : scratch.blocks()) {
    LTX_ASSIGN_OR_RETURN(Tensor block, Allocate({bytes}, DType::kU8, MemoryOwner::kWorkspace));
    held.push_back(std::move(block));
  }
  ++work_.operations;
  work_.bytes += static_cast<double>(result.num_bytes());
  return result;
}

absl::Status ShapeDevice::Concurrently(absl::FunctionRef<absl::Status()> first,
                                       absl::FunctionRef<absl::Status()> second) {
  if (recording_pool_ == nullptr) return Device::Concurrently(first, second);
  cuda::MemoryPool* const pool = recording_pool_.get();
  lanes_.Fork({pool});
  absl::Status status = first();
  if (status.ok()) {
    lanes_.UseSide();
    status = second();
  }
  lanes_.Join({pool});
  return status;
}

absl::StatusOr<std::unique_ptr<Recording>> ShapeDevice::Record(
    absl::FunctionRef<absl::Status()> work) {
  if (!can_record()) return Device::Record(work);
  LTX_ASSIGN_OR_RETURN(recording_pool_, recorder_.Pool());
  const WorkCount before = std::exchange(work_, {});
  const absl::Status issued = work();
  std::shared_ptr<cuda::MemoryPool> pool = std::exchange(recording_pool_, nullptr);
  const WorkCount recorded = std::exchange(work_, before);
  LTX_RETURN_IF_ERROR(issued);
  return std::make_unique<ShapeRecording>(recorded, std::move(pool));
}

absl::Status ShapeDevice::Replay(const Recording& recording) {
  if (!can_record()) return Device::Replay(recording);
  work_ += static_cast<const ShapeRecording&>(recording).work();
  return absl::OkStatus();
}

// --- Matrix products and convolutions ---------------------------------------------------------

absl::StatusOr<LinearWeight> ShapeDevice::PrepareLinear(const Tensor& weight, const Tensor& bias,
                                                        MemoryOwner owner) {
  LinearWeight result;
  result.out_features = weight.dim(0);
  result.in_features = weight.dim(1);
  if (keeps_linear_operands()) {
    result.prepared = std::make_shared<BookedWeight>(weight, bias);
    return result;
  }
  LTX_ASSIGN_OR_RETURN(result.prepared, Book(*this, weight, bias, owner));
  return result;
}

absl::StatusOr<Tensor> ShapeDevice::Linear(const Tensor& x, const LinearWeight& weight,
                                           const LinearOptions& options) {
  Shape shape = x.shape();
  shape.set_dim(-1, weight.out_features);
  LinearSize size;
  size.rows = x.shape().num_rows();
  size.in = weight.in_features;
  size.out = weight.out_features;
  size.dtype = x.dtype();
  size.bias = static_cast<const BookedWeight&>(*weight.prepared).has_bias();
  size.activation = options.activation;
  work_.products += static_cast<double>(size.rows) * static_cast<double>(size.in * size.out);
  return Result(shape, x.dtype(), op_scratch().Linear(size));
}

absl::StatusOr<ConvWeight> ShapeDevice::PrepareConv(const Tensor& weight, const Tensor& bias,
                                                    MemoryOwner owner) {
  ConvWeight result;
  result.out_channels = weight.dim(0);
  result.in_channels = weight.dim(1);
  result.kernel = Shape(weight.shape().dims().subspan(2));
  LTX_ASSIGN_OR_RETURN(result.prepared, Book(*this, weight, bias, owner));
  return result;
}

absl::StatusOr<ShapeDevice::PlacedConv> ShapeDevice::PlaceConv(const Tensor& x,
                                                               const ConvWeight& weight,
                                                               const ConvOptions& options) {
  const int spatial = weight.kernel.rank();
  PlacedConv result;
  result.shape = x.shape();
  ConvSize& size = result.size;
  size.batch = x.dim(0);
  for (int axis = 0; axis < spatial; ++axis) {
    ConvAxis& placed = size.axes[3 - spatial + axis];
    LTX_ASSIGN_OR_RETURN(
        placed, MakeConvAxis(axis, x.dim(axis + 1), weight.kernel.dim(axis), options.axes[axis]));
    result.shape.set_dim(axis + 1, placed.output);
  }
  result.shape.set_dim(-1, weight.out_channels);
  size.in_channels = weight.in_channels;
  size.out_channels = weight.out_channels;
  size.dtype = x.dtype();
  size.activation = options.activation;
  return result;
}

absl::StatusOr<Tensor> ShapeDevice::Conv(const Tensor& x, const ConvWeight& weight,
                                         const ConvOptions& options) {
  LTX_ASSIGN_OR_RETURN(const PlacedConv placed, PlaceConv(x, weight, options));
  work_.products += ProductsOf(placed.size, weight);
  return Result(placed.shape, x.dtype(), op_scratch().Conv(placed.size));
}

absl::StatusOr<Tensor> ShapeDevice::NormConv(Tensor x, const ConvWeight& weight,
                                             const ConvOptions& options,
                                             const NormConvOptions& around) {
  LTX_ASSIGN_OR_RETURN(const PlacedConv placed, PlaceConv(x, weight, options));
  NormConvSize size;
  size.conv = placed.size;
  if (around.norm) size.norm_activation = around.norm->activation;
  size.residual = options.residual.defined();
  size.depth_to_space = around.depth_to_space;
  size.drop_first_frame = around.drop_first_frame;
  const std::optional<ScratchBlocks> scratch = op_scratch().NormConv(size);
  if (!scratch.has_value()) return Device::NormConv(std::move(x), weight, options, around);
  work_.products += ProductsOf(placed.size, weight);
  if (around.into.defined()) return Counted(around.into, *scratch);
  return Result(SpaceOfDepth(placed.shape, around.depth_to_space, around.drop_first_frame),
                x.dtype(), *scratch);
}

absl::StatusOr<ConvWeight> ShapeDevice::PrepareConvTranspose1d(const Tensor& weight,
                                                               const Tensor& bias,
                                                               MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(ConvWeight result, PrepareConv(weight, bias, owner));
  std::swap(result.in_channels, result.out_channels);
  return result;
}

absl::StatusOr<Tensor> ShapeDevice::ConvTranspose1d(const Tensor& x, const ConvWeight& weight,
                                                    int64_t stride, int64_t padding) {
  const int64_t kernel = weight.kernel.dim(0);
  LTX_ASSIGN_OR_RETURN(const TransposedConv transposed,
                       MakeTransposedConv(x.dim(1), kernel, stride, padding));
  ConvSize size;
  size.batch = x.dim(0);
  size.axes[2] = transposed.phase;
  size.in_channels = weight.in_channels;
  size.out_channels = weight.out_channels;
  size.phases = stride;
  size.dtype = x.dtype();
  work_.products += static_cast<double>(x.dim(0) * x.dim(1)) *
                    static_cast<double>(kernel * size.in_channels * size.out_channels);
  return Result({x.dim(0), transposed.length, weight.out_channels}, x.dtype(),
                op_scratch().Conv(size));
}

// --- Normalisation and attention --------------------------------------------------------------

absl::StatusOr<std::vector<Tensor>> ShapeDevice::ResidualNorm(
    Tensor* state, const ResidualUpdate& /*update*/, float /*epsilon*/,
    absl::Span<const NormReading> readings) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < readings.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(Tensor reading, Like(*state));
    results.push_back(std::move(reading));
  }
  return results;
}

absl::StatusOr<Tensor> ShapeDevice::GroupNorm(const Tensor& x, const Tensor& /*weight*/,
                                              const Tensor& /*bias*/,
                                              const GroupNormOptions& options) {
  GroupNormSize size;
  size.batch = x.dim(0);
  size.positions = size.batch == 0 ? 0 : x.shape().num_rows() / size.batch;
  size.channels = x.dim(-1);
  size.groups = options.groups;
  size.dtype = x.dtype();
  return Result(x.shape(), x.dtype(), op_scratch().GroupNorm(size));
}

absl::Status ShapeDevice::NormRopeInPlace(absl::Span<const NormRopePart> /*parts*/) {
  ++work_.operations;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ShapeDevice::Attention(const Columns& q, const Columns& k, const Columns& v,
                                              const AttentionOptions& options) {
  AttentionSize size;
  size.batch = q.tensor.dim(0);
  size.heads = options.heads;
  size.queries = q.tensor.dim(1);
  size.keys = k.tensor.dim(1);
  size.head_dim = q.width / options.heads;
  size.dtype = q.tensor.dtype();
  size.kv_heads = options.kv_heads;
  size.value_dim = v.width / options.kv_heads;
  size.causal = options.causal;
  size.window = options.window;
  size.scale = options.scale;
  size.key_mask = options.key_mask.defined();
  size.bias = options.bias.defined();
  size.q = {q.begin, q.pitch()};
  size.k = {k.begin, k.pitch()};
  size.v = {v.begin, v.pitch()};
  work_.attention +=
      static_cast<double>(size.batch * size.heads * (size.head_dim + size.value_dim)) *
      static_cast<double>(size.queries) * static_cast<double>(size.keys);
  const FirstUse first_use = op_scratch().FirstUseOf(size);
  if (first_use.preparation.any() && prepared_keys_.insert(first_use.key).second) {
    prepared_ += first_use.preparation;
    new_attentions_.push_back(size);
  }
  return Result({size.batch, size.queries, size.heads * size.value_dim}, size.dtype,
                op_scratch().Attention(size));
}

absl::Status ShapeDevice::HeadGate(Tensor* /*x*/, const Columns& /*logits*/) {
  ++work_.operations;
  return absl::OkStatus();
}

absl::Status ShapeDevice::RmsNormInto(const Tensor& x, float /*epsilon*/, Columns* /*columns*/) {
  ++work_.operations;
  work_.bytes += static_cast<double>(x.num_bytes());
  return absl::OkStatus();
}

// --- Results like their first operand ---------------------------------------------------------

absl::StatusOr<Tensor> ShapeDevice::RmsNorm(const Tensor& x, const Tensor&, float, bool,
                                            Activation) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::LayerNormModulate(const Tensor& x, float, const RowVectors&,
                                                      const RowVectors&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::Modulate(const Tensor& x, const RowVectors&, const RowVectors&,
                                             Activation) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::NormRope(const Tensor& x, const NormRopeOptions&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::Rope(const Tensor& x, int64_t, const RopeTable&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::Apply(const Tensor& x, Activation) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::LeakyRelu(const Tensor& x, float) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::Clamp(const Tensor& x, float, float) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::SoftCap(const Tensor& x, float) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::LogFloor(const Tensor& x, float) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::Add(const Tensor& x, const Tensor&) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::GeluTanhMul(const Tensor& x, const Tensor&) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::Scale(const Tensor& x, float) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::ScaleShiftChannels(const Tensor& x, const Tensor&,
                                                       const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::NormalizeChannels(const Tensor& x, const Tensor&,
                                                      const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::AddSpatialNoise(const Tensor& x, const Tensor&, const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::AntiAliasedSnake(const Tensor& x, const Tensor&, const Tensor&,
                                                     const Tensor&, const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::Lerp(const Tensor& x, const Tensor&, float) { return Like(x); }
absl::StatusOr<Tensor> ShapeDevice::LerpTokens(const Tensor& x, const Tensor&, const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::VelocityToDenoised(const Tensor& x, const Tensor&,
                                                       const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::BlendClean(const Tensor& x, const Tensor&, const Tensor&) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::EulerStep(const Tensor& x, const Tensor&, float, float) {
  return Like(x);
}
absl::StatusOr<Tensor> ShapeDevice::LinearCombination(float, const Tensor& x, float, const Tensor&,
                                                      float, const Tensor&) {
  return Like(x);
}

absl::StatusOr<Tensor> ShapeDevice::WeightedSum(absl::Span<const WeightedTerm> terms, DType dtype) {
  return Result(terms.front().x.shape(), dtype);
}
absl::StatusOr<Tensor> ShapeDevice::Guide(const Tensor& cond, const Tensor&, const Tensor&,
                                          const Tensor&, const GuidanceScales&) {
  return Like(cond);
}
absl::StatusOr<std::vector<double>> ShapeDevice::BatchDot(const Tensor& a, const Tensor&) {
  return std::vector<double>(a.dim(0), 0.0);
}

// --- Layout -------------------------------------------------------------------------------------

absl::StatusOr<Tensor> ShapeDevice::Magnitude(const Tensor& x) {
  Shape shape = x.shape();
  shape.set_dim(-1, x.dim(-1) / 2);
  return Result(shape, x.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::OuterSum(const Columns& a, const Tensor& b) {
  return Result({a.tensor.dim(0), b.dim(0), b.dim(1)}, b.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::Cast(const Tensor& x, DType dtype) {
  return Result(x.shape(), dtype);
}

absl::StatusOr<Tensor> ShapeDevice::Permute(const Tensor& x, absl::Span<const int> order) {
  Shape shape = x.shape();
  for (size_t i = 0; i < order.size(); ++i) shape.set_dim(static_cast<int>(i), x.dim(order[i]));
  return Result(shape, x.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::Slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  Shape shape = x.shape();
  shape.set_dim(axis, end - begin);
  return Result(shape, x.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::Concat(absl::Span<const Tensor> parts, int axis) {
  if (parts.empty()) return absl::InternalError("Concat: needs at least one part");
  Shape shape = parts[0].shape();
  int64_t extent = 0;
  for (const Tensor& part : parts) extent += part.dim(axis);
  shape.set_dim(axis, extent);
  return Result(shape, parts[0].dtype());
}

absl::StatusOr<Tensor> ShapeDevice::Pad(const Tensor& x, int axis, int64_t before, int64_t after,
                                        PadMode /*mode*/) {
  Shape shape = x.shape();
  shape.set_dim(axis, x.dim(axis) + before + after);
  return Result(shape, x.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::GatherRows(const Tensor& table,
                                               absl::Span<const int32_t> indices) {
  return Result({static_cast<int64_t>(indices.size()), table.dim(1)}, table.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::Interleave(absl::Span<const Tensor> parts) {
  LTX_ASSIGN_OR_RETURN(const Shape shape, InterleaveShape(parts));
  return Result(shape, parts[0].dtype());
}

absl::StatusOr<Tensor> ShapeDevice::DepthToSpace(const Tensor& x, const std::array<int, 3>& factors,
                                                 bool drop_first_frame) {
  return Result(SpaceOfDepth(x.shape(), factors, drop_first_frame), x.dtype());
}

absl::StatusOr<Tensor> ShapeDevice::UpsampleNearest2x(const Tensor& x) {
  return Result({x.dim(0), x.dim(1) * 2, x.dim(2) * 2, x.dim(3)}, x.dtype());
}

absl::StatusOr<ByteFrames> ShapeDevice::ToByteFrames(const Tensor& frames, MemoryOwner owner) {
  ByteFrames bytes;
  LTX_ASSIGN_OR_RETURN(bytes.rgb, Allocate(frames.shape(), DType::kU8, owner));
  LTX_ASSIGN_OR_RETURN(bytes.i420, Allocate({frames.dim(0), frames.dim(1) * 3 / 2, frames.dim(2)},
                                            DType::kU8, owner));
  return bytes;
}

absl::StatusOr<bool> ShapeDevice::AllFinite(const Tensor& /*x*/) { return true; }

}  // namespace ltx
