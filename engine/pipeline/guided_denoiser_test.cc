#include "engine/pipeline/guided_denoiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/dit/test_model.h"
#include "engine/dit/x0.h"

namespace ltx::pipeline {
namespace {

using dit::RelativeDistance;
using dit::Values;
using sampling::GuiderParams;
using sampling::kModalities;
using sampling::Modality;
using sampling::PerModality;
using Kind = dit::PerturbationKind;

/// Batched and sequential passes differ by the order of sums in products of other sizes.
constexpr double kRounding = 1e-5;
/// A guidance term of the tests moves the result by more than this.
constexpr double kVisible = 1e-2;

class GuidedDenoiserTest : public testing::Test {
 protected:
  GuidedDenoiserTest() : device_(dit::TestDevice()), inputs_(1) {
    const checkpoint::TransformerConfig config = dit::SmallConfig();
    model_ = *dit::LoadModel(*device_, config, dit::RandomFile(dit::ShapesOf(config)));
    EXPECT_TRUE(inputs_.Upload(*model_).ok());
    evaluation_.sigma = 0.75;
    evaluation_.latents = {inputs_.video.latent, inputs_.audio.latent};
    for (const Modality m : kModalities) {
      const dit::Modality& input = m == Modality::kVideo ? inputs_.video : inputs_.audio;
      GuidedDenoiser::Stream& stream = streams_[m];
      stream.prepared = input.prepared;
      stream.mask.assign(input.prepared->tokens, 1.0f);
      stream.mask.back() = 0.5f;
      stream.positive = input.context;
      stream.negative = *TensorFromFloats(
          *device_, dit::RandomValues(input.context.num_elements(), m == Modality::kVideo ? 7 : 8),
          input.context.shape());
    }
    streams_.video.guider = Params(3.0, 1.0, {{1}}, 0.7, 3.0);
    streams_.audio.guider = Params(7.0, 0.5, {{0}}, 0.45, 2.0);
  }

  static GuiderParams Params(double cfg, double stg, std::optional<std::vector<int64_t>> blocks,
                             double rescale, double modality, int64_t skip = 0) {
    GuiderParams params;
    params.cfg_scale = cfg;
    params.stg_scale = stg;
    params.stg_blocks = std::move(blocks);
    params.rescale_scale = rescale;
    params.modality_scale = modality;
    params.skip_step = skip;
    return params;
  }

  std::unique_ptr<GuidedDenoiser> Create(bool batched) {
    GuidedDenoiser::Options options;
    options.batch_passes = batched;
    auto denoiser = GuidedDenoiser::Create(model_.get(), streams_, options);
    EXPECT_TRUE(denoiser.ok()) << denoiser.status();
    return *std::move(denoiser);
  }
  absl::StatusOr<sampling::Estimates> Run(GuidedDenoiser& denoiser,
                                          const sampling::Evaluation& evaluation) {
    LTX_RETURN_IF_ERROR(denoiser.Begin(evaluation));
    forwards_ = denoiser.pending();
    while (denoiser.pending() > 0) LTX_RETURN_IF_ERROR(denoiser.Forward());
    return denoiser.Finish();
  }
  PerModality<std::vector<float>> Denoise(bool batched) {
    const auto estimates = Run(*Create(batched), evaluation_);
    EXPECT_TRUE(estimates.ok()) << estimates.status();
    return {Values(*device_, estimates->denoised.video),
            Values(*device_, estimates->denoised.audio)};
  }

  /// One pass by hand.
  PerModality<std::vector<float>> Pass(bool negative,
                                       const std::vector<dit::Perturbation>& perturbations) {
    const auto input = [&](Modality m) {
      dit::Modality modality = m == Modality::kVideo ? inputs_.video : inputs_.audio;
      modality.sigma = {0.75f};
      modality.timesteps = sampling::TokenTimesteps(streams_[m].mask, 0.75f);
      modality.context = negative ? streams_[m].negative : streams_[m].positive;
      return modality;
    };
    const dit::Modality video = input(Modality::kVideo), audio = input(Modality::kAudio);
    const auto prediction = dit::PredictDenoised(*model_, &video, &audio, {perturbations});
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    return {Values(*device_, prediction->denoised.video),
            Values(*device_, prediction->denoised.audio)};
  }

  /// The formula of the guider in double.
  static std::vector<float> Combine(const GuiderParams& params, const std::vector<float>& c,
                                    const std::vector<float>& u, const std::vector<float>& p,
                                    const std::vector<float>& m) {
    std::vector<double> y(c.size());
    for (size_t i = 0; i < c.size(); ++i) {
      y[i] = c[i] + (params.cfg_scale - 1) * (c[i] - u[i]) + params.stg_scale * (c[i] - p[i]) +
             (params.modality_scale - 1) * (c[i] - m[i]);
    }
    const auto deviation = [](const auto& values) {
      double sum = 0, squares = 0;
      for (const double v : values) sum += v;
      for (const double v : values) squares += std::pow(v - sum / values.size(), 2);
      return std::sqrt(squares / (values.size() - 1));
    };
    const double factor =
        params.rescale_scale * deviation(c) / deviation(y) + (1 - params.rescale_scale);
    std::vector<float> scaled;
    for (const double v : y) scaled.push_back(static_cast<float>(v * factor));
    return scaled;
  }

  std::unique_ptr<cpu::CpuDevice> device_;
  std::unique_ptr<dit::Transformer> model_;
  dit::TestInputs inputs_;
  PerModality<GuidedDenoiser::Stream> streams_;
  sampling::Evaluation evaluation_;
  int forwards_ = 0;
};

TEST(ModelLevelTest, AThousandfoldRoundsAsFromDouble) {
  int moved = 0;
  for (int i = 1; i < 5000; ++i) {
    const double sigma = std::sqrt(i / 5000.0 * 0.97);
    const float level = ModelLevel(sigma);
    int exponent = 0;
    // Beyond, 1000 sigma lies in a binade less far above sigma's than elsewhere.
    if (std::frexp(sigma, &exponent) > 0.512) {
      EXPECT_EQ(level * 1000.0f, static_cast<float>(sigma * 1000.0)) << sigma;
    }
    EXPECT_NEAR(level, sigma, 2e-7 * sigma);
    moved += level != static_cast<float>(sigma) ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
  // Levels of a schedule are what they are.
  for (const float sigma : {1.0f, 0.99375f, 0.421875f, 0.0011f, 0.86708307f}) {
    EXPECT_EQ(ModelLevel(sigma), sigma);
  }
}

TEST_F(GuidedDenoiserTest, CombinesTheFourPassesOfEachModality) {
  const auto cond = Pass(false, {});
  const auto uncond = Pass(true, {});
  const auto perturbed =
      Pass(false, {{Kind::kSkipVideoSelfAttention, {{1}}}, {Kind::kSkipAudioSelfAttention, {{0}}}});
  const auto isolated = Pass(false, {{Kind::kSkipAudioToVideoAttention, std::nullopt},
                                     {Kind::kSkipVideoToAudioAttention, std::nullopt}});
  const auto sequential = Denoise(false);
  EXPECT_EQ(forwards_, 4);
  const auto batched = Denoise(true);
  EXPECT_EQ(forwards_, 1);
  for (const Modality m : kModalities) {
    const std::vector<float> want =
        Combine(streams_[m].guider.At(0.75), cond[m], uncond[m], perturbed[m], isolated[m]);
    EXPECT_LT(RelativeDistance(sequential[m], want), kRounding);
    EXPECT_LT(RelativeDistance(batched[m], want), kRounding);
    EXPECT_LT(RelativeDistance(batched[m], sequential[m]), kRounding);
  }
}

TEST_F(GuidedDenoiserTest, EveryTermCounts) {
  const auto all = Denoise(true);
  struct Change {
    const char* what;
    void (*apply)(GuiderParams*);
  };
  const GuiderParams before = streams_.video.guider.At(0.75);
  for (const Change& change : {Change{"cfg", [](GuiderParams* p) { p->cfg_scale = 1.0; }},
                               {"stg", [](GuiderParams* p) { p->stg_scale = 0.0; }},
                               {"stg blocks", [](GuiderParams* p) { p->stg_blocks = {{0}}; }},
                               {"all blocks", [](GuiderParams* p) { p->stg_blocks.reset(); }},
                               {"rescale", [](GuiderParams* p) { p->rescale_scale = 0.0; }},
                               {"modality", [](GuiderParams* p) { p->modality_scale = 1.0; }}}) {
    GuiderParams params = before;
    change.apply(&params);
    streams_.video.guider = params;
    for (const bool batched : {true, false}) {
      const auto changed = Denoise(batched);
      EXPECT_GT(RelativeDistance(changed.video, all.video), kVisible) << change.what;
      // Perturbed video self-attention reaches audio through the blocks after it; everything else
      // is the other modality's own affair.
      if (std::string(change.what).find("blocks") == std::string::npos &&
          std::string(change.what) != "stg") {
        EXPECT_LT(RelativeDistance(changed.audio, all.audio), kRounding) << change.what;
      }
    }
  }
}

TEST_F(GuidedDenoiserTest, NeutralSettingsMakeOnePlainForward) {
  streams_.video.guider = streams_.audio.guider = GuiderParams();
  streams_.video.negative = streams_.audio.negative = Tensor();
  const auto plain = Pass(false, {});
  for (const bool batched : {true, false}) {
    const auto denoised = Denoise(batched);
    EXPECT_EQ(forwards_, 1);
    EXPECT_EQ(denoised.video, plain.video);
    EXPECT_EQ(denoised.audio, plain.audio);
  }
}

TEST_F(GuidedDenoiserTest, AModalityAloneIsGuidedAlone) {
  // Without video there is nothing to isolate audio from, but the pass is the reference's.
  streams_.video = {};
  evaluation_.latents.video = Tensor();
  const auto batched = Denoise(true);
  const auto sequential = Denoise(false);
  EXPECT_EQ(forwards_, 4);
  EXPECT_TRUE(batched.video.empty());
  EXPECT_LT(RelativeDistance(batched.audio, sequential.audio), kRounding);
}

TEST_F(GuidedDenoiserTest, SkippedStepsKeepTheLastPrediction) {
  streams_.video.guider = Params(3.0, 0.0, {}, 0.0, 1.0, /*skip=*/1);
  streams_.audio.guider = Params(1.0, 0.0, {}, 0.0, 1.0, /*skip=*/3);
  const auto denoiser = Create(true);
  const auto first = Run(*denoiser, evaluation_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto step = [&](int step, bool half_step, double sigma) {
    sampling::Evaluation evaluation = evaluation_;
    evaluation.step = step;
    evaluation.half_step = half_step;
    evaluation.sigma = sigma;
    const auto estimates = Run(*denoiser, evaluation);
    EXPECT_TRUE(estimates.ok()) << estimates.status();
    return *estimates;
  };
  // Both skip step 1: nothing runs.
  const auto second = step(1, false, 0.5);
  EXPECT_EQ(forwards_, 0);
  EXPECT_EQ(Values(*device_, second.denoised.video), Values(*device_, first->denoised.video));
  EXPECT_EQ(Values(*device_, second.denoised.audio), Values(*device_, first->denoised.audio));
  // Audio alone skips step 2: video is predicted from it as it is.
  const auto third = step(2, false, 0.5);
  EXPECT_EQ(forwards_, 1);
  EXPECT_GT(RelativeDistance(Values(*device_, third.denoised.video),
                             Values(*device_, first->denoised.video)),
            kVisible);
  EXPECT_EQ(Values(*device_, third.denoised.audio), Values(*device_, first->denoised.audio));
  // A half step is never skipped.
  const auto half = step(1, true, 0.4);
  EXPECT_EQ(forwards_, 1);
  EXPECT_GT(RelativeDistance(Values(*device_, half.denoised.audio),
                             Values(*device_, first->denoised.audio)),
            kVisible);
}

TEST_F(GuidedDenoiserTest, ASkippedStreamIsNotUpdatedInsideTheModel) {
  streams_.video.guider = Params(1.0, 0.0, {}, 0.0, 1.0);
  streams_.audio.guider = Params(1.0, 0.0, {}, 0.0, 1.0, /*skip=*/1);
  const auto denoiser = Create(true);
  ASSERT_TRUE(Run(*denoiser, evaluation_).ok());
  sampling::Evaluation skipping = evaluation_;
  skipping.step = 1;
  const auto got = Run(*denoiser, skipping);
  ASSERT_TRUE(got.ok());
  dit::Modality video = inputs_.video, audio = inputs_.audio;
  video.sigma = audio.sigma = {0.75f};
  video.timesteps = sampling::TokenTimesteps(streams_.video.mask, 0.75f);
  audio.timesteps = sampling::TokenTimesteps(streams_.audio.mask, 0.75f);
  audio.enabled = false;
  const auto want = dit::PredictDenoised(*model_, &video, &audio);
  EXPECT_EQ(Values(*device_, got->denoised.video), Values(*device_, want->denoised.video));
  EXPECT_GT(RelativeDistance(Values(*device_, got->denoised.video), Pass(false, {}).video), 1e-4);
}

TEST_F(GuidedDenoiserTest, AFrozenStreamHasLevelZero) {
  streams_.audio.guider = GuiderParams();
  streams_.audio.frozen = true;
  streams_.audio.mask.assign(streams_.audio.mask.size(), 0.0f);
  EXPECT_EQ(Denoise(true).audio, inputs_.audio_latent);
  const auto frozen = Denoise(true).video;
  streams_.audio.frozen = false;
  EXPECT_GT(RelativeDistance(Denoise(true).video, frozen), 1e-4);
}

TEST_F(GuidedDenoiserTest, SettingsFollowTheNoiseLevel) {
  streams_.audio.guider = GuiderParams();
  streams_.video.guider = *sampling::GuiderSchedule::FromBounds(
      {{0.5, GuiderParams()}, {1.0, Params(3.0, 0.0, {}, 0.0, 1.0)}});
  Denoise(false);
  EXPECT_EQ(forwards_, 2);
  evaluation_.sigma = 0.5;
  Denoise(false);
  EXPECT_EQ(forwards_, 1);
}

TEST_F(GuidedDenoiserTest, UnconditionedPredictionsWhereTheyAreForced) {
  streams_.video.guider = streams_.audio.guider = GuiderParams();
  GuidedDenoiser::Options options;
  options.force_uncond = true;
  const auto denoiser = *GuidedDenoiser::Create(model_.get(), streams_, options);
  const auto estimates = Run(*denoiser, evaluation_);
  ASSERT_TRUE(estimates.ok());
  const auto uncond = Pass(true, {});
  EXPECT_LT(RelativeDistance(Values(*device_, estimates->unconditioned.video), uncond.video),
            kRounding);
  EXPECT_LT(RelativeDistance(Values(*device_, estimates->unconditioned.audio), uncond.audio),
            kRounding);
  EXPECT_LT(RelativeDistance(Values(*device_, estimates->denoised.video), Pass(false, {}).video),
            kRounding);
  streams_.video.guider = Params(1.0, 0.0, {}, 0.0, 1.0, /*skip=*/1);
  EXPECT_EQ(GuidedDenoiser::Create(model_.get(), streams_, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(GuidedDenoiserTest, ObserversSeeEveryPass) {
  GuidedDenoiser::Options options;
  std::vector<std::string> names;
  options.observer = [&](absl::string_view name, const Tensor&) { names.emplace_back(name); };
  const auto denoiser = *GuidedDenoiser::Create(model_.get(), streams_, options);
  ASSERT_TRUE(Run(*denoiser, evaluation_).ok());
  EXPECT_EQ(names,
            (std::vector<std::string>{"call0.video.cond", "call0.video.uncond", "call0.video.ptb",
                                      "call0.video.mod", "call0.audio.cond", "call0.audio.uncond",
                                      "call0.audio.ptb", "call0.audio.mod"}));
}

TEST_F(GuidedDenoiserTest, RefusesWhatItCannotGuide) {
  const auto refused = [&] { return GuidedDenoiser::Create(model_.get(), streams_, {}).status(); };
  const PerModality<GuidedDenoiser::Stream> good = streams_;
  streams_.audio.negative = Tensor();
  EXPECT_EQ(refused().message(),
            "audio_guider.cfg_scale needs a negative context, and there is none");
  streams_ = good;
  streams_.video.negative = *streams_.video.positive.Reshape({1, 6, 8});
  EXPECT_EQ(refused().code(), absl::StatusCode::kInvalidArgument);
  streams_ = good;
  streams_.video.guider = Params(3.0, 1.0, {}, 2.0, 1.0);
  EXPECT_EQ(refused().code(), absl::StatusCode::kInvalidArgument);
  streams_ = good;
  streams_.video.mask.pop_back();
  EXPECT_EQ(refused().code(), absl::StatusCode::kInvalidArgument);
  streams_ = {};
  EXPECT_EQ(refused().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GuidedDenoiserTest, TheOrderOfCallsIsChecked) {
  const auto denoiser = Create(true);
  const auto early = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(denoiser->Finish().status().code(), early);
  EXPECT_EQ(denoiser->Forward().code(), early);
  ASSERT_TRUE(denoiser->Begin(evaluation_).ok());
  EXPECT_EQ(denoiser->Begin(evaluation_).code(), early);
  EXPECT_EQ(denoiser->Finish().status().code(), early);
  ASSERT_TRUE(denoiser->Forward().ok());
  EXPECT_EQ(denoiser->Forward().code(), early);
  EXPECT_TRUE(denoiser->Finish().ok());
}

}  // namespace
}  // namespace ltx::pipeline
