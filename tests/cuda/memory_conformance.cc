#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cuda/context.h"
#include "kernels/status_macros.h"
#include "tests/cuda/conformance.h"

namespace ltx::cuda {
namespace {

/// The GPU's memory, but the n-th tensor or the n-th segment is refused.
class RefusingMemory final : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    ++segments_;
    if (refuse_segments_ && segments_ >= refuse_at_) return nullptr;
    return heap_.Allocate(bytes);
  }
  void Free(void* segment, int64_t bytes) override { heap_.Free(segment, bytes); }
  bool Admit(int64_t /*bytes*/, MemoryOwner /*owner*/) override {
    ++tensors_;
    return refuse_segments_ || tensors_ != refuse_at_;
  }

  /// The n-th tensor from now; 0: none.
  void RefuseTensor(int64_t n) { Set(false, n); }
  /// The n-th segment from now, and all after it.
  void RefuseSegmentsFrom(int64_t n) { Set(true, n); }
  int64_t tensors() const { return tensors_; }
  int64_t segments() const { return segments_; }

 private:
  void Set(bool segments, int64_t n) {
    refuse_segments_ = segments;
    refuse_at_ = n;
    tensors_ = 0;
    segments_ = 0;
  }

  CudaHeap heap_;
  bool refuse_segments_ = false;
  int64_t refuse_at_ = 0;
  int64_t tensors_ = 0;
  int64_t segments_ = 0;
};

using Memory = ConformanceTest;

TEST_F(Memory, UploadsAndDownloads) {
  // Zero, one, odd, and more than both halves of the pinned memory.
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{4097}, int64_t{32} << 20, (int64_t{100} << 20) + 13}) {
    const Operand operand = Bytes({bytes}, DType::kU8);
    const auto tensors = Upload(gpu(), {operand});
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    EXPECT_EQ(gpu().ledger().Read().total.live_bytes, bytes);
    std::vector<uint8_t> back(bytes, 0xee);
    const absl::Status status = gpu().Download((*tensors)[0], absl::MakeSpan(back));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(back == operand.bytes) << "Upload and Download of " << bytes << " bytes";
  }
}

TEST_F(Memory, ManySmallUploadsInARow) {
  // More than the pinned memory holds, with work in between that keeps the stream behind.
  std::vector<Operand> operands;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 3000; ++i) {
    operands.push_back(Normal({64, 129}, DType::kF32));
    const auto uploaded = Upload(gpu(), {operands.back()});
    ASSERT_TRUE(uploaded.ok()) << uploaded.status();
    tensors.push_back((*uploaded)[0]);
    ASSERT_TRUE(gpu().Add(tensors.back(), tensors.back()).ok());
  }
  int unequal = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<uint8_t> back(tensors[i].num_bytes());
    ASSERT_TRUE(gpu().Download(tensors[i], absl::MakeSpan(back)).ok());
    unequal += back == operands[i].bytes ? 0 : 1;
  }
  EXPECT_EQ(unequal, 0) << "Upload, small ones";
}

TEST_F(Memory, TransfersOfAnotherSizeAreRefused) {
  const auto tensors = Upload(gpu(), {Bytes({8}, DType::kU8)});
  ASSERT_TRUE(tensors.ok());
  std::vector<uint8_t> seven(7);
  EXPECT_EQ(gpu().Upload(seven, (*tensors)[0]).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(gpu().Download((*tensors)[0], absl::MakeSpan(seven)).code(),
            absl::StatusCode::kInternal);
}

TEST_F(Memory, AWholeGpuIsNotToBeHad) {
  const auto all = gpu().Allocate({int64_t{1} << 45}, DType::kU8, MemoryOwner::kActivations);
  EXPECT_EQ(all.status().code(), absl::StatusCode::kResourceExhausted) << all.status();
  EXPECT_NE(all.status().message().find("activations"), absl::string_view::npos) << all.status();
  EXPECT_TRUE(gpu().Synchronize().ok()) << "the failure must leave nothing behind";
}

/// One operation of each kind that takes scratch.
absl::StatusOr<std::vector<uint8_t>> SmallRun(Device& device, absl::Span<const Tensor> t) {
  LTX_ASSIGN_OR_RETURN(const LinearWeight linear,
                       device.PrepareLinear(t[1], t[2], MemoryOwner::kWeightsDit));
  LinearOptions silu;
  silu.activation = Activation::kSilu;
  LTX_ASSIGN_OR_RETURN(Tensor x, device.Linear(t[0], linear, silu));
  LTX_ASSIGN_OR_RETURN(x, device.Linear(x, linear, LinearOptions{}));
  LTX_ASSIGN_OR_RETURN(x, device.RmsNorm(x, Tensor(), 1e-6f));
  AttentionOptions attention;
  attention.heads = 4;
  attention.kv_heads = 4;
  attention.key_mask = t[3];
  LTX_ASSIGN_OR_RETURN(x, device.Attention(x, x, x, attention));
  LTX_ASSIGN_OR_RETURN(const ConvWeight conv,
                       device.PrepareConv(t[4], t[2], MemoryOwner::kWeightsVideoVae));
  ConvOptions options;
  options.axes[0].pad_before = 2;
  LTX_ASSIGN_OR_RETURN(x, device.Conv(x, conv, options));
  GroupNormOptions groups;
  LTX_ASSIGN_OR_RETURN(x, device.GroupNorm(x, t[2], t[2], groups));
  LTX_ASSIGN_OR_RETURN(Tensor rows, x.Reshape({x.dim(0) * x.dim(1), x.dim(2)}));
  LTX_ASSIGN_OR_RETURN(rows, device.GatherRows(rows, {0, 5, 3}));
  LTX_ASSIGN_OR_RETURN(const bool finite, device.AllFinite(rows));
  if (!finite) return absl::InternalError("not finite");
  std::vector<uint8_t> bytes(rows.num_bytes());
  LTX_RETURN_IF_ERROR(device.Download(rows, absl::MakeSpan(bytes)));
  return bytes;
}

TEST_F(Memory, EveryRefusedAllocationIsSurvived) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<Operand> operands = {Normal({1, 40, 128}, dtype),
                                           Normal({128, 128}, dtype, 0.1f), Normal({128}, dtype),
                                           Mask({1, 40}, 0.7), Normal({128, 128, 3}, dtype, 0.1f)};
    RefusingMemory memory;
    CudaDeviceOptions options;
    options.memory = &memory;
    auto device = CudaDevice::Create(options);
    ASSERT_TRUE(device.ok()) << device.status();
    {
      const auto tensors = Upload(**device, operands);
      ASSERT_TRUE(tensors.ok());
      const int64_t live = (*device)->ledger().Read().total.live_bytes;
      const auto undisturbed = SmallRun(**device, *tensors);
      ASSERT_TRUE(undisturbed.ok()) << undisturbed.status();
      for (int64_t n = 1;; ++n) {
        ASSERT_LT(n, 300);
        memory.RefuseTensor(n);
        const auto result = SmallRun(**device, *tensors);
        const bool refused = memory.tensors() >= n;
        memory.RefuseTensor(0);
        if (!refused) {
          EXPECT_GT(n, 10) << "the run allocates more than that";
          break;
        }
        ASSERT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted)
            << "tensor " << n << ": " << result.status();
        ASSERT_EQ((*device)->ledger().Read().total.live_bytes, live) << "tensor " << n;
        const auto again = SmallRun(**device, *tensors);
        ASSERT_TRUE(again.ok()) << "after tensor " << n << ": " << again.status();
        ASSERT_TRUE(*again == *undisturbed) << "other bits after tensor " << n << " was refused";
      }
    }
    EXPECT_EQ((*device)->ledger().Read().total.live_bytes, 0);
    (*device)->context().Trim();
    EXPECT_EQ((*device)->context().idle_bytes(), 0);
  }
}

TEST_F(Memory, EveryRefusedSegmentIsSurvived) {
  const DType dtype = DType::kBF16;
  const std::vector<Operand> operands = {Normal({1, 40, 128}, dtype),
                                         Normal({128, 128}, dtype, 0.1f), Normal({128}, dtype),
                                         Mask({1, 40}, 0.7), Normal({128, 128, 3}, dtype, 0.1f)};
  std::vector<uint8_t> want;
  for (int64_t n = 0;; ++n) {
    ASSERT_LT(n, 50);
    RefusingMemory memory;
    CudaDeviceOptions options;
    options.memory = &memory;
    auto device = CudaDevice::Create(options);
    ASSERT_TRUE(device.ok()) << device.status();
    const auto tensors = Upload(**device, operands);
    ASSERT_TRUE(tensors.ok());
    memory.RefuseSegmentsFrom(n == 0 ? 1000 : n);
    const auto result = SmallRun(**device, *tensors);
    const bool refused = n > 0 && memory.segments() >= n;
    memory.RefuseTensor(0);
    if (n == 0) {
      ASSERT_TRUE(result.ok()) << result.status();
      want = *result;
      continue;
    }
    if (!refused) {
      EXPECT_GT(n, 1) << "the run takes a segment";
      break;
    }
    // Scratch that only serves the choice of an algorithm may be done without.
    if (result.ok()) {
      EXPECT_TRUE(*result == want) << "segment " << n;
    } else {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
    }
    const auto again = SmallRun(**device, *tensors);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == want) << "other bits after segment " << n << " was refused";
  }
}

}  // namespace
}  // namespace ltx::cuda
