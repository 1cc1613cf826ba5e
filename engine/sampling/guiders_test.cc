#include "engine/sampling/guiders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::sampling {
namespace {

TEST(GuiderParamsTest, NeutralFactorsNeedNoPass) {
  GuiderParams params;
  EXPECT_FALSE(params.NeedsUnconditioned());
  EXPECT_FALSE(params.NeedsPerturbed());
  EXPECT_FALSE(params.NeedsIsolated());
  params.cfg_scale = 1.0 + 5e-10;
  params.modality_scale = 1.0 - 5e-10;
  EXPECT_FALSE(params.NeedsUnconditioned());
  EXPECT_FALSE(params.NeedsIsolated());
  params.cfg_scale = 0.0;
  params.stg_scale = 1e-12;
  params.modality_scale = 1.0 + 1e-8;
  EXPECT_TRUE(params.NeedsUnconditioned());
  EXPECT_TRUE(params.NeedsPerturbed());
  EXPECT_TRUE(params.NeedsIsolated());
}

TEST(GuiderParamsTest, SkipsAllButEveryKPlusFirstStep) {
  GuiderParams params;
  for (int step = 0; step < 5; ++step) EXPECT_FALSE(params.SkipsStep(step));
  params.skip_step = 2;
  const std::vector<bool> skipped = {false, true, true, false, true, true, false};
  for (int step = 0; step < 7; ++step) EXPECT_EQ(params.SkipsStep(step), skipped[step]) << step;
}

TEST(GuiderParamsTest, RefusesWhatIsNoSetting) {
  EXPECT_TRUE(CheckGuiderParams({}, "video_guider").ok());
  const auto refused = [](const auto& change) {
    GuiderParams params;
    change(&params);
    return std::string(CheckGuiderParams(params, "video_guider").message());
  };
  EXPECT_EQ(refused([](GuiderParams* p) { p->rescale_scale = 1.5; }),
            "video_guider.rescale_scale is 1.5; 0 to 1 would be legal");
  EXPECT_NE(refused([](GuiderParams* p) { p->cfg_scale = std::nan(""); }), "");
  EXPECT_NE(refused([](GuiderParams* p) { p->stg_scale = HUGE_VAL; }), "");
  EXPECT_NE(refused([](GuiderParams* p) { p->modality_scale = -HUGE_VAL; }), "");
  EXPECT_NE(refused([](GuiderParams* p) { p->skip_step = -1; }), "");
  EXPECT_NE(refused([](GuiderParams* p) { p->stg_blocks = {{3, -1}}; }), "");
  EXPECT_EQ(refused([](GuiderParams* p) { p->stg_blocks.reset(); }), "");
}

TEST(GuiderScheduleTest, SmallestBoundNotBelowTheLevel) {
  const auto with = [](double cfg) {
    GuiderParams params;
    params.cfg_scale = cfg;
    return params;
  };
  const GuiderSchedule schedule =
      *GuiderSchedule::FromBounds({{1.0, with(1)}, {0.8, with(2)}, {0.3, with(3)}});
  EXPECT_EQ(schedule.At(1.5).cfg_scale, 1);
  EXPECT_EQ(schedule.At(0.81).cfg_scale, 1);
  EXPECT_EQ(schedule.At(0.8).cfg_scale, 2);
  EXPECT_EQ(schedule.At(0.3).cfg_scale, 3);
  EXPECT_EQ(schedule.At(0.0).cfg_scale, 3);
  EXPECT_EQ(GuiderSchedule(with(7)).At(0.4).cfg_scale, 7);
  EXPECT_FALSE(GuiderSchedule::FromBounds({}).ok());
  EXPECT_FALSE(
      GuiderSchedule::FromBounds({{std::numeric_limits<double>::quiet_NaN(), with(1)}}).ok());
}

class GuidersTest : public testing::Test {
 protected:
  GuidersTest() : device_(*cpu::CpuDevice::Create({1, nullptr})) {
    std::mt19937 generator(5);
    std::normal_distribution<float> normal;
    for (std::vector<float>* values : {&cond_, &uncond_}) {
      for (int i = 0; i < 60; ++i) values->push_back(normal(generator));
    }
  }
  Tensor Make(const std::vector<float>& values) {
    return *TensorFromFloats(*device_, values, {1, 12, 5});
  }
  std::vector<float> Values(const absl::StatusOr<Tensor>& tensor) {
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return *ToFloats(*device_, *tensor);
  }
  static double Dot(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0.0;
    for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  }

  std::unique_ptr<cpu::CpuDevice> device_;
  std::vector<float> cond_, uncond_;
};

TEST_F(GuidersTest, CfgStarIsCfgAgainstTheProjection) {
  const std::vector<float> delta = Values(CfgStarDelta(*device_, 3.0f, Make(cond_), Make(uncond_)));
  // cond less its projection on uncond is orthogonal to uncond.
  EXPECT_NEAR(Dot(delta, uncond_), 0.0, 1e-4);
  EXPECT_NEAR(Dot(delta, cond_),
              2.0 * (Dot(cond_, cond_) - std::pow(Dot(cond_, uncond_), 2) / Dot(uncond_, uncond_)),
              1e-3);
}

TEST_F(GuidersTest, ApgWithoutLimitsIsCfg) {
  const std::vector<float> cfg = Values(CfgDelta(*device_, 3.0f, Make(cond_), Make(uncond_)));
  const std::vector<float> apg =
      Values(ApgDelta(*device_, {3.0f, 1.0f, 0.0f}, Make(cond_), Make(uncond_)));
  for (size_t i = 0; i < cfg.size(); ++i) EXPECT_NEAR(apg[i], cfg[i], 1e-5f);
}

TEST_F(GuidersTest, ApgWithoutEtaIsOrthogonalAndShortened) {
  const std::vector<float> delta =
      Values(ApgDelta(*device_, {2.0f, 0.0f, 0.0f}, Make(cond_), Make(uncond_)));
  EXPECT_NEAR(Dot(delta, cond_), 0.0, 1e-4);
  const std::vector<float> shortened =
      Values(ApgDelta(*device_, {2.0f, 1.0f, 0.5f}, Make(cond_), Make(uncond_)));
  EXPECT_NEAR(std::sqrt(Dot(shortened, shortened)), 0.5, 1e-5);
  // A difference below the threshold stays as it is.
  EXPECT_EQ(Values(ApgDelta(*device_, {2.0f, 1.0f, 1e6f}, Make(cond_), Make(uncond_))),
            Values(ApgDelta(*device_, {2.0f, 1.0f, 0.0f}, Make(cond_), Make(uncond_))));
}

TEST_F(GuidersTest, StatefulApgRemembersAndScalesByItself) {
  const ApgOptions options = {3.0f, 1.0f, 0.0f};
  StatefulApg guider(options, 0.5f);
  const std::vector<float> first = Values(guider.Delta(*device_, Make(cond_), Make(uncond_)));
  const std::vector<float> second = Values(guider.Delta(*device_, Make(cond_), Make(uncond_)));
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(first[i], 3.0f * (cond_[i] - uncond_[i]), 1e-5f);
    EXPECT_NEAR(second[i], 1.5f * first[i], 1e-5f);
  }
  StatefulApg forgetful(options, 0.0f);
  EXPECT_EQ(Values(forgetful.Delta(*device_, Make(cond_), Make(uncond_))),
            Values(forgetful.Delta(*device_, Make(cond_), Make(uncond_))));
}

TEST_F(GuidersTest, ProjectionsTakeSingleSamples) {
  const Tensor pair = *TensorFromFloats(*device_, cond_, {2, 6, 5});
  EXPECT_EQ(CfgStarDelta(*device_, 3.0f, pair, pair).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ApgDelta(*device_, {}, pair, pair).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::sampling
