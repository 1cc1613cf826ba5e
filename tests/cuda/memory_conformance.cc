#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/cuda/conformance.h"
#include "tests/cuda/refusing_memory.h"

namespace ltx::cuda {
namespace {

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

TEST_F(Memory, UploadsFromTwoLanes) {
  const Operand a = Normal({1 << 20}, DType::kF32);
  const Operand b = Normal({3 << 20}, DType::kF32);
  std::vector<Tensor> tensors(20);
  for (int round = 0; round < 10; ++round) {
    const auto upload = [&](const Operand& operand, int at) -> absl::Status {
      LTX_ASSIGN_OR_RETURN(const std::vector<Tensor> one, Upload(gpu(), {operand}));
      tensors[2 * round + at] = one[0];
      return absl::OkStatus();
    };
    const absl::Status status =
        gpu().Concurrently([&] { return upload(a, 0); }, [&] { return upload(b, 1); });
    ASSERT_TRUE(status.ok()) << status;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<uint8_t> back(tensors[i].num_bytes());
    ASSERT_TRUE(gpu().Download(tensors[i], absl::MakeSpan(back)).ok());
    EXPECT_TRUE(back == (i % 2 == 0 ? a : b).bytes) << "Upload " << i << " of two lanes";
  }
}

/// Bytes that take a while to come, or do not.
class SlowSource final : public ByteSource {
 public:
  explicit SlowSource(std::vector<uint8_t> bytes, int64_t fails_at = -1)
      : bytes_(std::move(bytes)), fails_at_(fails_at) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t begin, absl::Span<uint8_t> to) const override {
    if (fails_at_ >= begin && fails_at_ < begin + static_cast<int64_t>(to.size())) {
      return absl::DataLossError("gone");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (!to.empty()) std::memcpy(to.data(), bytes_.data() + begin, to.size());
    return absl::OkStatus();
  }

 private:
  const std::vector<uint8_t> bytes_;
  const int64_t fails_at_;
};

TEST_F(Memory, ManyUploadsAtOnce) {
  // Of none, less than a piece, pieces and a rest; what is done with them does not wait for Finish.
  const int64_t sizes[] = {0, 4, 1000, 4096, 300 << 10, 2 << 20, (5 << 20) + 20, 9 << 20};
  std::vector<Operand> operands;
  for (const int64_t size : sizes) operands.push_back(Normal({size / 4}, DType::kF32));
  const auto same = [&](const Tensor& tensor, const Operand& operand) {
    std::vector<uint8_t> back(tensor.num_bytes());
    return gpu().Download(tensor, absl::MakeSpan(back)).ok() && back == operand.bytes;
  };
  for (const bool finish_first : {true, false}) {
    std::vector<Tensor> tensors;
    std::vector<Tensor> copies;
    {
      const auto uploads = gpu().StartUploads();
      for (int round = 0; round < 12; ++round) {
        for (const Operand& operand : operands) {
          const auto tensor =
              gpu().Allocate(operand.shape, operand.dtype, MemoryOwner::kWeightsDit);
          ASSERT_TRUE(tensor.ok());
          tensors.push_back(*tensor);
          ASSERT_TRUE(uploads->Add(std::make_shared<SlowSource>(operand.bytes), *tensor).ok());
          if (finish_first || round % 3 > 0) continue;
          copies.push_back(CopyForOwner(gpu(), *tensor, MemoryOwner::kActivations).value());
          // Nobody else wants this one: its memory is not to be reused before it is filled.
          const auto dropped = gpu().Allocate({1 << 20}, DType::kF32, MemoryOwner::kWeightsDit);
          ASSERT_TRUE(dropped.ok());
          ASSERT_TRUE(
              uploads
                  ->Add(std::make_shared<SlowSource>(std::vector<uint8_t>(4 << 20, 0xee)), *dropped)
                  .ok());
        }
      }
      if (finish_first) {
        ASSERT_TRUE(uploads->Finish().ok());
      }
    }
    int unequal = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      unequal += same(tensors[i], operands[i % operands.size()]) ? 0 : 1;
    }
    for (size_t i = 0; i < copies.size(); ++i) {
      unequal += same(copies[i], operands[i % operands.size()]) ? 0 : 1;
    }
    EXPECT_EQ(unequal, 0) << "Uploads, finished " << finish_first;
    int64_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += tensor.num_bytes();
    for (const Tensor& tensor : copies) bytes += tensor.num_bytes();
    EXPECT_EQ(gpu().ledger().Read().total.live_bytes, bytes);
  }
}

TEST_F(Memory, UploadsInBothLanes) {
  const Operand a = Normal({3 << 20}, DType::kF32);
  const Operand b = Normal({1 << 20}, DType::kF32);
  const auto uploads = gpu().StartUploads();
  std::vector<Tensor> sums(20);
  for (int round = 0; round < 10; ++round) {
    const auto upload = [&](const Operand& operand, int at) -> absl::Status {
      LTX_ASSIGN_OR_RETURN(const Tensor tensor,
                           gpu().Allocate(operand.shape, operand.dtype, MemoryOwner::kActivations));
      LTX_RETURN_IF_ERROR(uploads->Add(std::make_shared<SlowSource>(operand.bytes), tensor));
      if (round % 2 == 0) {
        sums[2 * round + at] = tensor;
        return absl::OkStatus();
      }
      LTX_ASSIGN_OR_RETURN(sums[2 * round + at], gpu().Scale(tensor, 1.0f));
      return absl::OkStatus();
    };
    const absl::Status status =
        gpu().Concurrently([&] { return upload(a, 0); }, [&] { return upload(b, 1); });
    ASSERT_TRUE(status.ok()) << status;
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    std::vector<uint8_t> back(sums[i].num_bytes());
    ASSERT_TRUE(gpu().Download(sums[i], absl::MakeSpan(back)).ok());
    EXPECT_TRUE(back == (i % 2 == 0 ? a : b).bytes) << "Uploads " << i << " of two lanes";
  }
}

TEST_F(Memory, AnUploadThatFailsIsReported) {
  const std::vector<uint8_t> bytes(20 << 20, 1);
  for (const int64_t fails_at : {int64_t{0}, int64_t{7} << 20, (int64_t{20} << 20) - 1}) {
    const auto uploads = gpu().StartUploads();
    const auto tensor =
        gpu().Allocate({static_cast<int64_t>(bytes.size())}, DType::kU8, MemoryOwner::kWeightsDit);
    ASSERT_TRUE(tensor.ok());
    ASSERT_TRUE(uploads->Add(std::make_shared<SlowSource>(bytes), *tensor).ok());
    ASSERT_TRUE(uploads->Add(std::make_shared<SlowSource>(bytes, fails_at), *tensor).ok());
    EXPECT_EQ(uploads->Finish(), absl::DataLossError("gone"));
    EXPECT_EQ(uploads->Add(std::make_shared<SlowSource>(bytes), *tensor),
              absl::DataLossError("gone"));
    // Others are not affected.
    const auto later = gpu().StartUploads();
    ASSERT_TRUE(later->Add(std::make_shared<SlowSource>(bytes), *tensor).ok());
    EXPECT_TRUE(later->Finish().ok());
    std::vector<uint8_t> back(bytes.size());
    ASSERT_TRUE(gpu().Download(*tensor, absl::MakeSpan(back)).ok());
    EXPECT_TRUE(back == bytes) << "Uploads after a failure";
  }
  const auto small = gpu().Allocate({7}, DType::kU8, MemoryOwner::kWeightsDit);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(gpu().StartUploads()->Add(std::make_shared<SlowSource>(bytes), *small).code(),
            absl::StatusCode::kInternal);
}

TEST_F(Memory, LanesReuseBlocksOnlyAfterWaiting) {
  // Chains of operations that take and drop blocks of the same sizes in both lanes.
  const auto chain = [](Device& device, Tensor x) -> absl::StatusOr<Tensor> {
    for (int i = 0; i < 40; ++i) {
      LTX_ASSIGN_OR_RETURN(const Tensor y, device.Scale(x, 1.01f));
      LTX_ASSIGN_OR_RETURN(x, device.Add(y, x));
      LTX_ASSIGN_OR_RETURN(x, device.Scale(x, 0.5f));
    }
    return x;
  };
  for (const int64_t count : {1 << 12, 1 << 22}) {
    Check(absl::StrCat("Concurrently ", count),
          {Normal({count}, DType::kF32), Normal({count}, DType::kF32)}, kExact,
          [&](Device& d, Operands t) -> absl::StatusOr<std::vector<Tensor>> {
            std::vector<Tensor> results;
            for (int round = 0; round < 5; ++round) {
              Tensor a = t[0];
              Tensor b = t[1];
              LTX_RETURN_IF_ERROR(d.Concurrently(
                  [&]() -> absl::Status {
                    LTX_ASSIGN_OR_RETURN(a, chain(d, a));
                    return absl::OkStatus();
                  },
                  [&]() -> absl::Status {
                    LTX_ASSIGN_OR_RETURN(b, chain(d, b));
                    return absl::OkStatus();
                  }));
              LTX_ASSIGN_OR_RETURN(Tensor both, d.Add(a, b));
              results.push_back(both);
            }
            return results;
          });
  }
}

TEST_F(Memory, CopiesOverwrite) {
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32}) {
    for (const int64_t count : {0, 1, 1001}) {
      Check(absl::StrCat("Copy ", count, " ", DTypeName(dtype)),
            {Bytes({count}, dtype), Bytes({count}, dtype)}, kExact,
            [](Device& d, Operands t) -> absl::StatusOr<Tensor> {
              Tensor to = t[1];
              LTX_RETURN_IF_ERROR(d.Copy(t[0], &to));
              return to;
            });
    }
  }
}

TEST_F(Memory, RecordingsRunAgainOnWhatTheirInputsHoldNow) {
  ASSERT_TRUE(gpu().can_record());
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Operand first = Normal({64, 256}, dtype);
    const Operand second = Normal({64, 256}, dtype);
    const auto tensors = Upload(gpu(), {first, Normal({256, 256}, dtype, 0.1f), second});
    ASSERT_TRUE(tensors.ok());
    const auto weight = gpu().PrepareLinear((*tensors)[1], Tensor(), MemoryOwner::kWeightsDit);
    ASSERT_TRUE(weight.ok()) << weight.status();
    const auto work = [&](const Tensor& x) -> absl::StatusOr<Tensor> {
      LTX_ASSIGN_OR_RETURN(Tensor y, gpu().Linear(x, *weight, LinearOptions{}));
      LTX_ASSIGN_OR_RETURN(y, gpu().Apply(y, Activation::kSilu));
      return gpu().Linear(y, *weight, LinearOptions{});
    };
    const auto bytes = [&](const Tensor& tensor) {
      std::vector<uint8_t> result(tensor.num_bytes());
      EXPECT_TRUE(gpu().Download(tensor, absl::MakeSpan(result)).ok());
      return result;
    };
    const auto want_first = work((*tensors)[0]);
    const auto want_second = work((*tensors)[2]);
    ASSERT_TRUE(want_first.ok() && want_second.ok()) << want_first.status();
    Tensor input = (*tensors)[0];
    Tensor output;
    auto recording = gpu().Record([&]() -> absl::Status {
      LTX_ASSIGN_OR_RETURN(output, work(input));
      return absl::OkStatus();
    });
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (int replay = 0; replay < 3; ++replay) {
      ASSERT_TRUE(gpu().Replay(**recording).ok());
      EXPECT_TRUE(bytes(output) == bytes(*want_first)) << "Replay " << replay;
    }
    ASSERT_TRUE(gpu().Copy((*tensors)[2], &input).ok());
    ASSERT_TRUE(gpu().Replay(**recording).ok());
    EXPECT_TRUE(bytes(output) == bytes(*want_second)) << "Replay with another input";
  }
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
