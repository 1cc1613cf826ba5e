#include "engine/pipeline/latent_preview.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::pipeline {
namespace {

constexpr int64_t kFrames = 17;
constexpr int64_t kWidth = 256;
constexpr int64_t kHeight = 192;
constexpr int64_t kTokenPixels = 32;
constexpr int64_t kColumns = kWidth / kTokenPixels;
constexpr int64_t kRows = kHeight / kTokenPixels;
/// Latent frame 1 of 3 stands for pixel frames 1 to 8.
constexpr int64_t kPixelFrame = 4;

/// Mean colour of what lies under each token.
std::vector<double> TokenMeans(const std::vector<float>& frames) {
  const float* const frame = frames.data() + kPixelFrame * kWidth * kHeight * 3;
  std::vector<double> means(kRows * kColumns * 3, 0.0);
  for (int64_t y = 0; y < kHeight; ++y) {
    for (int64_t x = 0; x < kWidth; ++x) {
      const int64_t token = y / kTokenPixels * kColumns + x / kTokenPixels;
      for (int c = 0; c < 3; ++c) means[token * 3 + c] += frame[(y * kWidth + x) * 3 + c];
    }
  }
  return means;
}

double Correlation(const std::vector<uint8_t>& a, const std::vector<double>& b) {
  double mean_a = 0;
  double mean_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] / static_cast<double>(a.size());
    mean_b += b[i] / static_cast<double>(b.size());
  }
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
    ab += (a[i] - mean_a) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

/// Of the previews after steps 4 and 8 of eight, with the finished frame.
TEST(LatentPreviewTest, ShowsWhatTheClipWillShow) {
  const auto device = cpu::CpuDevice::Create({}).value();
  ModelOptions options;
  options.compute_dtype = DType::kF32;
  const auto model =
      Model::Load(device.get(), *checkpoint::ModelSet::Open("models/ltx-tiny"), options).value();
  const int64_t before = device->ledger().Read().total.live_bytes;
  const auto preview = LatentPreview::Fit(*model);
  ASSERT_TRUE(preview.ok()) << preview.status();
  EXPECT_EQ(device->ledger().Read().total.live_bytes, before);
  EXPECT_EQ(preview->channels(), 128);
  EXPECT_GT(preview->explained(), 0.6);
  std::printf("explained %.3f\n", preview->explained());

  const std::vector<std::string> prompts = {"a red circle moves up",
                                            "a blue square moves left on a white background",
                                            "a green triangle moves down on a brown background"};
  std::map<std::string, double> means;
  for (const std::string& prompt : prompts) {
    GenerationRequest request = model->DefaultRequest();
    request.recipe = Recipe::kDistilledOneStage;
    request.prompt = prompt;
    request.width = kWidth;
    request.height = kHeight;
    request.num_frames = kFrames;
    std::map<std::string, LatentPreview::Picture> pictures;
    JobOptions job_options;
    std::vector<double> truth;
    job_options.observer = [&](absl::string_view name, const Tensor& x) {
      if (name == "frames") truth = TokenMeans(*ToFloats(*device, x));
      if (name != "s1.call3.video.x0" && name != "s1.call7.video.x0") return;
      const auto picture = preview->MiddleFrame(*device, x, kFrames, kHeight, kWidth);
      ASSERT_TRUE(picture.ok()) << picture.status();
      pictures[std::string(name)] = *picture;
      // Sixteen rows more than there are.
      EXPECT_EQ(preview->MiddleFrame(*device, x, kFrames, kHeight + 512, kWidth).status().code(),
                absl::StatusCode::kInternal);
    };
    const auto job = GenerationJob::Create(model.get(), request, job_options).value();
    while (!job->done()) ASSERT_TRUE(job->Advance().ok());
    ASSERT_EQ(pictures.size(), 2u);
    for (const auto& [name, picture] : pictures) {
      EXPECT_EQ(picture.latent_frame, 1);
      ASSERT_EQ(picture.height, kRows);
      ASSERT_EQ(picture.width, kColumns);
      const double correlation = Correlation(picture.rgb, truth);
      std::printf("%s, %s: %.3f\n", prompt.c_str(), name.c_str(), correlation);
      EXPECT_GT(correlation, 0.5) << prompt << " " << name;
      means[name] += correlation / static_cast<double>(prompts.size());
    }
  }
  EXPECT_GT(means["s1.call3.video.x0"], 0.65);
  EXPECT_GT(means["s1.call7.video.x0"], 0.65);
}

}  // namespace
}  // namespace ltx::pipeline
