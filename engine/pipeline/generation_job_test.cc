#include "engine/pipeline/generation_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::pipeline {
namespace {

/// ltx-tiny on the CPU, loaded once for all tests.
class GenerationJobTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = cpu::CpuDevice::Create({}).value().release();
    ModelOptions options;
    options.compute_dtype = DType::kF32;
    model_ = Model::Load(device_, *checkpoint::ModelSet::Open("models/ltx-tiny"), options)
                 .value()
                 .release();
  }
  static void TearDownTestSuite() {
    delete model_;
    EXPECT_EQ(device_->ledger().Read().total.live_bytes, 0);
    delete device_;
  }

  // As small as the model allows.
  static GenerationRequest Request() {
    GenerationRequest request = model_->DefaultRequest();
    request.prompt = "a red circle moves up";
    request.height = 128;
    request.width = 128;
    request.num_frames = 17;
    request.seed = 7;
    return request;
  }
  static std::unique_ptr<GenerationJob> Create(const GenerationRequest& request,
                                               const JobOptions& options = {}) {
    return GenerationJob::Create(model_, request, options).value();
  }
  static GenerationResult Finish(GenerationJob* job) {
    while (!job->done()) EXPECT_TRUE(job->Advance().ok());
    return job->TakeResult().value();
  }
  static int64_t LiveBytes(MemoryOwner owner) {
    return device_->ledger().Read().by_owner[static_cast<int>(owner)].live_bytes;
  }
  /// RGB and samples of a job, run to its end.
  static std::pair<std::vector<uint8_t>, std::vector<float>> Media(GenerationJob* job) {
    std::pair<std::vector<uint8_t>, std::vector<float>> media;
    media.second = *ToFloats(*device_, Finish(job).waveform);
    for (const FinishedFrames& part : job->TakeFrames()) {
      const std::vector<uint8_t> bytes = *ToBytes(*device_, part.bytes.rgb);
      media.first.insert(media.first.end(), bytes.begin(), bytes.end());
    }
    return media;
  }
  /// The picture before it is rounded to bytes, and how it came to be.
  struct Exact {
    std::vector<float> frames;
    int units = 0;
    size_t warnings = 0;
  };
  static Exact RunExact(const GenerationRequest& request) {
    Exact exact;
    JobOptions options;
    options.observer = [&exact](absl::string_view name, const Tensor& x) {
      if (name == "frames") exact.frames = *ToFloats(*device_, x);
    };
    const auto job = Create(request, options);
    exact.units = static_cast<int>(job->plan().size());
    exact.warnings = job->parameters().warnings.size();
    Finish(job.get());
    return exact;
  }

  static cpu::CpuDevice* device_;
  static Model* model_;
};
cpu::CpuDevice* GenerationJobTest::device_ = nullptr;
Model* GenerationJobTest::model_ = nullptr;

TEST_F(GenerationJobTest, WhatThereIsBetweenUnits) {
  GenerationRequest request = Request();
  const auto job = Create(request);
  EXPECT_EQ(job->Partial().status().code(), absl::StatusCode::kFailedPrecondition);
  float last_sigma = 2;
  while (!job->done()) {
    const WorkUnit unit = job->Advance().value().unit;
    const auto partial = job->Partial();
    if (unit.phase == Phase::kText) {
      EXPECT_EQ(partial.status().code(), absl::StatusCode::kFailedPrecondition);
      continue;
    }
    ASSERT_TRUE(partial.ok()) << partial.status();
    EXPECT_EQ(partial->unit.phase, unit.phase);
    EXPECT_EQ(partial->unit.index, unit.index);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : partial->tensors) {
      names.push_back(name);
      if (name != "video_latent") continue;
      // 17 frames are 3 latent ones; the first stage works at half the sides.
      const bool half = unit.phase == Phase::kStage1;
      EXPECT_EQ(tensor.dim(1), 3);
      EXPECT_EQ(tensor.dim(2), half ? 2 : 4);
      EXPECT_EQ(tensor.dim(3), half ? 2 : 4);
      EXPECT_TRUE(*device_->AllFinite(tensor));
    }
    if (unit.phase == Phase::kStage1 && unit.index < unit.count) {
      EXPECT_EQ(partial->step, unit.index);
      EXPECT_LT(partial->sigma, last_sigma);
      EXPECT_GT(partial->sigma, 0);
      last_sigma = static_cast<float>(partial->sigma);
    }
    if (unit.index == unit.count) {
      EXPECT_EQ(partial->sigma, 0);
    }
    const std::vector<std::string> latents = {"video_latent", "audio_latent"};
    if (unit.phase == Phase::kStage1 || unit.phase == Phase::kStage2) {
      EXPECT_EQ(names, latents);
    }
  }
  EXPECT_EQ(job->Partial()->tensors.back().first, "waveform");
}

TEST_F(GenerationJobTest, ModelDescribesItself) {
  EXPECT_EQ(model_->name(), "ltx-tiny");
  EXPECT_EQ(model_->kind(), checkpoint::ModelKind::kDistilled);
  EXPECT_EQ(model_->version(), "2.5.1");
  EXPECT_EQ(model_->recipes(),
            (std::vector<Recipe>{Recipe::kDistilled, Recipe::kDistilledOneStage}));
  EXPECT_EQ(model_->sample_rate(), 48000);
  const GenerationRequest request = model_->DefaultRequest();
  EXPECT_EQ(request.width, 256);
  EXPECT_EQ(request.height, 192);
  EXPECT_EQ(request.num_frames, 25);
  EXPECT_EQ(request.frame_rate.ToString(), "24");
  EXPECT_EQ(model_->limits().max_frames, 49);
}

TEST_F(GenerationJobTest, RunsOneUnitAtATime) {
  const auto job = Create(Request());
  ASSERT_EQ(job->plan().size(), 15u);
  EXPECT_FALSE(job->TakeResult().ok());
  double previous_total = 0;
  for (int i = 0; i < 15; ++i) {
    const WorkUnit planned = job->plan()[i];
    const auto report = job->Advance();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->unit.phase, planned.phase);
    EXPECT_EQ(report->unit.index, planned.index);
    EXPECT_EQ(report->completed, i + 1);
    EXPECT_EQ(report->total, 15);
    EXPECT_GE(report->seconds, 0.0);
    previous_total += report->seconds;
  }
  EXPECT_TRUE(job->done());
  EXPECT_EQ(job->Advance().status().code(), absl::StatusCode::kFailedPrecondition);
  const std::vector<FinishedFrames> frames = job->TakeFrames();
  EXPECT_TRUE(job->TakeFrames().empty());
  const GenerationResult result = job->TakeResult().value();
  EXPECT_EQ(job->TakeResult().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].first_frame, 0);
  const ByteFrames& bytes = frames[0].bytes;
  EXPECT_EQ(bytes.rgb.shape(), (Shape{17, 128, 128, 3}));
  EXPECT_EQ(bytes.i420.shape(), (Shape{17, 192, 128}));
  EXPECT_EQ(result.waveform.shape(), (Shape{2, int64_t{480} * (4 * 18 - 3)}));
  EXPECT_EQ(result.sample_rate, 48000);
  EXPECT_EQ(LiveBytes(MemoryOwner::kMedia),
            bytes.rgb.num_bytes() + bytes.i420.num_bytes() + result.waveform.num_bytes());
  EXPECT_EQ(result.phases.size(), 6u);
  EXPECT_EQ(result.phases[1].units, 8);
  double total = 0;
  for (const PhaseSeconds& phase : result.phases) total += phase.seconds;
  EXPECT_NEAR(total, previous_total, 1e-9);
  EXPECT_EQ(result.parameters.stages[0].sampler, "euler_ancestral eta=1 s_noise=1");
  EXPECT_GT(result.parameters.prompt_tokens, 0);
  EXPECT_EQ(result.parameters.dropped_prompt_tokens, 0);
}

TEST_F(GenerationJobTest, SameRequestSameBytesAlsoWhenInterleaved) {
  GenerationRequest other = Request();
  other.seed = 8;
  const auto alone = Media(Create(Request()).get());
  const auto a = Create(Request());
  const auto b = Create(other);
  while (!a->done() || !b->done()) {
    for (GenerationJob* job : {a.get(), b.get()}) {
      if (!job->done()) {
        ASSERT_TRUE(job->Advance().ok());
      }
    }
  }
  const auto from_a = Media(a.get());
  const auto from_b = Media(b.get());
  EXPECT_TRUE(from_a == alone);
  EXPECT_FALSE(from_b == alone);
}

TEST_F(GenerationJobTest, AKeptPromptGivesTheSameBytes) {
  const auto without = Media(Create(Request()).get());
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    ModelOptions options;
    options.compute_dtype = dtype;
    options.prompt_cache_bytes = int64_t{64} << 20;
    const auto model =
        Model::Load(device_, *checkpoint::ModelSet::Open("models/ltx-tiny"), options).value();
    const auto miss = GenerationJob::Create(model.get(), Request()).value();
    const auto from_miss = Media(miss.get());
    EXPECT_EQ(model->prompt_cache_stats().misses, 1u);
    EXPECT_EQ(LiveBytes(MemoryOwner::kMedia), 0);
    const auto hit = GenerationJob::Create(model.get(), Request()).value();
    const auto from_hit = Media(hit.get());
    EXPECT_EQ(model->prompt_cache_stats().hits, 1u);
    EXPECT_GT(model->prompt_cache_stats().bytes, 0);
    EXPECT_EQ(hit->parameters().prompt_tokens, miss->parameters().prompt_tokens);
    EXPECT_TRUE(from_hit == from_miss);
    EXPECT_EQ(from_hit == without, dtype == DType::kF32);
  }
}

TEST_F(GenerationJobTest, DestroyedAnywhereItFreesEverything) {
  // Rotary tables of the text side stay cached, so the first run settles the baseline.
  Finish(Create(Request()).get());
  const int64_t baseline = device_->ledger().Read().total.live_bytes;
  const int units = static_cast<int>(Create(Request())->plan().size());
  for (const int stop : {0, 1, 2, 5, 9, 10, 11, units - 1, units}) {
    {
      const auto job = Create(Request());
      for (int i = 0; i < stop; ++i) ASSERT_TRUE(job->Advance().ok());
    }
    EXPECT_EQ(device_->ledger().Read().total.live_bytes, baseline) << "after " << stop << " units";
  }
}

TEST_F(GenerationJobTest, OneStageRunsWithoutTheUpsampler) {
  GenerationRequest request = Request();
  request.recipe = Recipe::kDistilledOneStage;
  request.height = 96;
  request.width = 160;
  const auto job = Create(request);
  EXPECT_EQ(job->plan().size(), 11u);
  const GenerationResult result = Finish(job.get());
  EXPECT_EQ(job->TakeFrames().at(0).bytes.rgb.shape(), (Shape{17, 96, 160, 3}));
  EXPECT_EQ(result.parameters.stages.size(), 1u);
}

TEST_F(GenerationJobTest, GuidedPassesAgreeBatchedAndOneByOne) {
  GenerationRequest request = Request();
  request.recipe = Recipe::kOneStage;
  request.height = request.width = 96;
  request.num_inference_steps = 2;
  request.guidance_batching = GuidanceBatching::kBatched;
  const Exact batched = RunExact(request);
  EXPECT_EQ(batched.units, 2 + 2 + 1 + 1);
  EXPECT_EQ(batched.warnings, 1u);
  request.guidance_batching = GuidanceBatching::kSequential;
  const Exact sequential = RunExact(request);
  EXPECT_EQ(sequential.units, 2 + 8 + 1 + 1);
  ASSERT_EQ(batched.frames.size(), sequential.frames.size());
  ASSERT_FALSE(batched.frames.empty());
  double worst = 0;
  for (size_t i = 0; i < batched.frames.size(); ++i) {
    worst = std::max(worst, std::abs(double{batched.frames[i]} - sequential.frames[i]));
  }
  // A tenth of a grey level in eight bits.
  EXPECT_LT(worst, 4e-4);
  request.negative_prompt = "a blue square moves down";
  EXPECT_FALSE(RunExact(request).frames == sequential.frames);
}

TEST_F(GenerationJobTest, OneModalityAlone) {
  GenerationRequest request = Request();
  request.video_only = true;
  const auto picture = Create(request);
  EXPECT_FALSE(Finish(picture.get()).waveform.defined());
  EXPECT_EQ(picture->TakeFrames().size(), 1u);
  request = Request();
  request.recipe = Recipe::kT2a;
  request.height = request.width = 0;
  request.num_inference_steps = 2;
  const auto sound = Create(request);
  EXPECT_EQ(Finish(sound.get()).waveform.shape(), (Shape{2, int64_t{480} * (4 * 18 - 3)}));
  EXPECT_TRUE(sound->TakeFrames().empty());
}

TEST_F(GenerationJobTest, TheDurationHeadChoosesWithinTheBounds) {
  GenerationRequest request = Request();
  request.auto_duration.emplace();
  const auto job = Create(request);
  // Planned for the longest clip; then for what the head says.
  EXPECT_EQ(job->parameters().num_frames, 49);
  ASSERT_TRUE(job->Advance().ok());
  const EffectiveParameters& parameters = job->parameters();
  ASSERT_TRUE(parameters.predicted_seconds.has_value());
  EXPECT_EQ((parameters.num_frames - 1) % 8, 0);
  EXPECT_GE(parameters.num_frames, 24);
  EXPECT_GT(parameters.prompt_tokens, 0);
  request.auto_duration->max_seconds = 25.0 / 24;
  const auto short_job = Create(request);
  Finish(short_job.get());
  EXPECT_EQ(short_job->TakeFrames().at(0).bytes.rgb.dim(0), 25);
}

TEST_F(GenerationJobTest, ComponentsThatAreMissingAreNamed) {
  GenerationRequest request = Request();
  request.recipe = Recipe::kTwoStage;
  const auto adapter = GenerationJob::Create(model_, request);
  EXPECT_EQ(adapter.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorDetail(adapter.status())->reason, kReasonComponentMissing);
  EXPECT_EQ(GetErrorDetail(adapter.status())->legal, "distilled_lora");

  checkpoint::ModelSet files = *checkpoint::ModelSet::Open("models/ltx-tiny");
  files.duration_head.reset();
  files.spatial_upsampler.reset();
  ModelOptions options;
  options.compute_dtype = DType::kF32;
  const auto model = Model::Load(device_, files, options).value();
  EXPECT_EQ(model->recipes(), (std::vector<Recipe>{Recipe::kDistilledOneStage}));
  request = Request();
  EXPECT_EQ(GetErrorDetail(GenerationJob::Create(model.get(), request).status())->legal,
            "spatial_upsampler");
  request.recipe = Recipe::kDistilledOneStage;
  request.auto_duration.emplace();
  const auto head = GenerationJob::Create(model.get(), request);
  EXPECT_EQ(head.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorDetail(head.status())->field, "auto_duration");

  options.kind = checkpoint::ModelKind::kDev;
  const auto dev = Model::Load(device_, files, options).value();
  EXPECT_EQ(dev->recipes(), (std::vector<Recipe>{Recipe::kOneStage, Recipe::kT2a}));
  request = Request();
  EXPECT_EQ(GetErrorDetail(GenerationJob::Create(dev.get(), request).status())->reason,
            kReasonModelKind);
}

TEST_F(GenerationJobTest, BFloat16ShowsTheSameClip) {
  ModelOptions options;
  options.compute_dtype = DType::kBF16;
  const auto model =
      Model::Load(device_, *checkpoint::ModelSet::Open("models/ltx-tiny"), options).value();
  GenerationRequest request = Request();
  request.noise_dtype = DType::kF32;
  const auto job = GenerationJob::Create(model.get(), request).value();
  EXPECT_EQ(job->parameters().compute_dtype, DType::kBF16);
  const auto narrow = Media(job.get());
  const auto wide = Media(Create(request).get());
  ASSERT_EQ(narrow.first.size(), wide.first.size());
  double error = 0;
  for (size_t i = 0; i < wide.first.size(); ++i) {
    error += std::abs(int{narrow.first[i]} - wide.first[i]);
  }
  // Less than a grey level.
  EXPECT_LT(error / static_cast<double>(wide.first.size()), 1.0);
}

/// Normals, but for one draw.
class PoisonedNoise final : public sampling::NoiseSource {
 public:
  PoisonedNoise(sampling::NoiseDraw::Use use, int stage) : use_(use), stage_(stage) {}
  absl::StatusOr<Tensor> Draw(Device& device, const sampling::NoiseDraw& draw, const Shape& shape,
                              DType dtype) override {
    std::vector<float> values(shape.num_elements(), 0.5f);
    if (draw.use == use_ && draw.stage == stage_ && draw.modality == sampling::Modality::kAudio) {
      values.back() = std::numeric_limits<float>::quiet_NaN();
    }
    return TensorFromFloats(device, values, shape, dtype);
  }

 private:
  const sampling::NoiseDraw::Use use_;
  const int stage_;
};

TEST_F(GenerationJobTest, NamesWhereNumbersStopBeingFinite) {
  for (const auto& [use, stage, where] :
       {std::tuple<sampling::NoiseDraw::Use, int, std::string>{sampling::NoiseDraw::Use::kInitial,
                                                               1, "stage1 evaluation 1 of 8"},
        {sampling::NoiseDraw::Use::kInitial, 2, "stage2 evaluation 1 of 3"}}) {
    JobOptions options;
    options.noise = std::make_shared<PoisonedNoise>(use, stage);
    const auto job = Create(Request(), options);
    absl::Status status;
    while (status.ok() && !job->done()) status = job->Advance().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    const auto detail = GetErrorDetail(status);
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->reason, kReasonNonFinite);
    EXPECT_NE(detail->value.find(where), std::string::npos) << detail->value;
    EXPECT_EQ(job->Advance().status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(GenerationJobTest, RefusesBeforeAnyWork) {
  GenerationRequest request = Request();
  request.num_frames = 18;
  const auto job = GenerationJob::Create(model_, request);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorDetail(job.status())->legal, "17 or 25");
}

}  // namespace
}  // namespace ltx::pipeline
