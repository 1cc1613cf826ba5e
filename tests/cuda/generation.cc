#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/plan_projector.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "tests/cuda/refusing_memory.h"

namespace ltx::cuda {
namespace {

/// Finished clip on the host.
struct Clip {
  std::vector<uint8_t> frames;
  std::vector<float> waveform;
  friend bool operator==(const Clip& a, const Clip& b) {
    return a.frames == b.frames && a.waveform == b.waveform;
  }
};

/// ltx-tiny on a GPU whose memory can be refused.
class Generation : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    CudaDeviceOptions options;
    options.memory = &memory_;
    auto device = CudaDevice::Create(options);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    ASSERT_EQ(Load(), absl::OkStatus());
    loaded_ = live();
  }
  void TearDown() override {
    model_.reset();
    if (device_ == nullptr) return;
    EXPECT_EQ(live(), 0);
    EXPECT_EQ(device_->ledger().Read().live_allocations, 0);
    device_->context().Trim();
    EXPECT_EQ(device_->context().idle_bytes(), 0);
  }

  absl::Status Load() {
    model_.reset();
    LTX_ASSIGN_OR_RETURN(files_, checkpoint::ModelSet::Open("models/ltx-tiny"));
    pipeline::ModelOptions options;
    options.compute_dtype = GetParam();
    LTX_ASSIGN_OR_RETURN(model_, pipeline::Model::Load(device_.get(), files_, options));
    return absl::OkStatus();
  }

  pipeline::GenerationRequest Request() const {
    pipeline::GenerationRequest request = model_->DefaultRequest();
    request.prompt = "a red circle moves up, a low hum";
    request.height = 128;
    request.width = 128;
    request.num_frames = 17;
    request.seed = 7;
    return request;
  }

  absl::StatusOr<Clip> Run() {
    LTX_ASSIGN_OR_RETURN(const auto job, pipeline::GenerationJob::Create(model_.get(), Request()));
    while (!job->done()) LTX_RETURN_IF_ERROR(job->Advance().status());
    const std::vector<pipeline::FinishedFrames> frames = job->TakeFrames();
    LTX_ASSIGN_OR_RETURN(const pipeline::GenerationResult result, job->TakeResult());
    Clip clip;
    LTX_ASSIGN_OR_RETURN(clip.frames, ToBytes(*device_, frames.front().bytes.rgb));
    LTX_ASSIGN_OR_RETURN(clip.waveform, ToFloats(*device_, result.waveform));
    return clip;
  }

  int64_t live() const { return device_->ledger().Read().total.live_bytes; }

  /// Outlives every tensor.
  RefusingMemory memory_;
  std::unique_ptr<CudaDevice> device_;
  checkpoint::ModelSet files_;
  std::unique_ptr<pipeline::Model> model_;
  /// Live bytes after loading.
  int64_t loaded_ = 0;
};

TEST_P(Generation, SurvivesARefusedTensorAnywhere) {
  const auto first = Run();
  ASSERT_TRUE(first.ok()) << first.status();
  // What a run keeps on purpose (contexts of prompts, recordings) is there from now on.
  loaded_ = live();
  memory_.RefuseTensor(0);
  const auto undisturbed = Run();
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status();
  EXPECT_TRUE(*undisturbed == *first) << "the same request gives other bits the second time";
  EXPECT_EQ(live(), loaded_);
  const int64_t tensors = memory_.tensors();
  std::printf("%lld tensors a clip, %.1f MB live, %.1f MB peak, %.1f MB idle\n",
              static_cast<long long>(tensors), static_cast<double>(live()) / 1e6,
              static_cast<double>(device_->ledger().Read().total.peak_bytes) / 1e6,
              static_cast<double>(device_->context().idle_bytes()) / 1e6);
  const int64_t stride = std::max<int64_t>(1, tensors / 40) | 1;
  for (int64_t n = 1; n <= tensors; n += stride) {
    memory_.RefuseTensor(n);
    const auto run = Run();
    memory_.RefuseTensor(0);
    EXPECT_EQ(run.status().code(), absl::StatusCode::kResourceExhausted)
        << "tensor " << n << " of " << tensors << ": " << run.status();
    EXPECT_EQ(live(), loaded_) << "tensor " << n;
    const auto next = Run();
    ASSERT_TRUE(next.ok()) << "after tensor " << n << ": " << next.status();
    EXPECT_TRUE(*next == *first) << "other bits after tensor " << n << " was refused";
  }
}

TEST_P(Generation, LoadingSurvivesARefusedTensorAnywhere) {
  memory_.RefuseTensor(0);
  ASSERT_EQ(Load(), absl::OkStatus());
  const int64_t tensors = memory_.tensors();
  model_.reset();
  const int64_t stride = std::max<int64_t>(1, tensors / 25) | 1;
  for (int64_t n = 1; n <= tensors; n += stride) {
    memory_.RefuseTensor(n);
    EXPECT_EQ(Load().code(), absl::StatusCode::kResourceExhausted) << "tensor " << n;
    memory_.RefuseTensor(0);
    EXPECT_EQ(live(), 0) << "tensor " << n;
  }
  ASSERT_EQ(Load(), absl::OkStatus());
  EXPECT_EQ(live(), loaded_);
}

TEST_P(Generation, ItsMemoryIsProjected) {
  const auto projector = pipeline::PlanProjector::Create(model_.get(), files_);
  ASSERT_TRUE(projector.ok()) << projector.status();
  struct Size {
    int64_t width, height, frames;
  };
  // New, the same again, and others beside recordings that are there.
  for (const Size& size : {Size{128, 128, 17}, Size{128, 128, 17}, Size{256, 256, 49},
                           Size{256, 192, 25}, Size{256, 256, 49}}) {
    pipeline::GenerationRequest request = Request();
    request.width = size.width;
    request.height = size.height;
    request.num_frames = size.frames;
    const auto projection = (*projector)->Project(request);
    ASSERT_TRUE(projection.ok()) << projection.status();
    MemoryLedger& ledger = device_->ledger();
    const int64_t resident = ledger.Read().total.live_bytes;
    ledger.ResetPeaks();
    const auto job = pipeline::GenerationJob::Create(model_.get(), request);
    ASSERT_TRUE(job.ok()) << job.status();
    int64_t peak = 0;
    for (size_t phase = 0; !(*job)->done();) {
      const auto report = (*job)->Advance();
      ASSERT_TRUE(report.ok()) << report.status();
      if (report->unit.index < report->unit.count) continue;
      const MemoryLedger::Snapshot seen = ledger.Read();
      peak = std::max(peak, seen.total.peak_bytes);
      ASSERT_LT(phase, projection->phases.size());
      std::printf("%lldx%lldx%lld %-12s projected %8.3f MB, peak %8.3f MB, recordings %8.3f MB\n",
                  static_cast<long long>(size.width), static_cast<long long>(size.height),
                  static_cast<long long>(size.frames),
                  std::string(pipeline::PhaseName(report->unit.phase)).c_str(),
                  static_cast<double>(resident + projection->phases[phase].peak_bytes) / 1e6,
                  static_cast<double>(seen.total.peak_bytes) / 1e6,
                  static_cast<double>(
                      seen.by_owner[static_cast<int>(MemoryOwner::kRecordings)].live_bytes) /
                      1e6);
      ++phase;
      ledger.ResetPeaks();
    }
    EXPECT_NEAR(static_cast<double>(resident + projection->peak_bytes), static_cast<double>(peak),
                0.05 * static_cast<double>(peak));
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Generation, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) {
                           return info.param == DType::kF32 ? "F32" : "BF16";
                         });

}  // namespace
}  // namespace ltx::cuda
