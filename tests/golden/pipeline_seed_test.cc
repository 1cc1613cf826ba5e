// A seed alone must give the run that the reference recorded: draws to the bit, and everything that
// follows from them within the case's bounds.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/sampling/torch_cpu_generator.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/golden/compare.h"
#include "tests/golden/tiny_run.h"

namespace ltx::golden {
namespace {

constexpr char kCase[] = "tests/goldens/pipeline/ltx_tiny_distilled.safetensors";

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

TEST(PipelineSeedTest, DrawsAreThoseOfTheReference) {
  const GoldenCase golden = GoldenCase::Load(kCase).value();
  const auto seed = golden.params()["seed"].get<uint64_t>();
  sampling::TorchCpuGenerator start(seed);
  for (const char* name :
       {"noise.stage1.video", "noise.stage1.audio", "noise.stage2.video", "noise.stage2.audio"}) {
    const std::vector<float> recorded = golden.InputFloats(name).value();
    EXPECT_EQ(Bits(start.Draw(static_cast<int64_t>(recorded.size()), DType::kF32).value()),
              Bits(recorded))
        << name;
  }
  sampling::TorchCpuGenerator loop(seed + 10000);
  const std::vector<float> video = golden.InputFloats("noise.loop.video").value();
  const std::vector<float> audio = golden.InputFloats("noise.loop.audio").value();
  const int64_t draws = golden.InputShape("noise.loop.video")->dim(0);
  ASSERT_EQ(draws, 7);
  for (int64_t i = 0; i < draws; ++i) {
    for (const std::vector<float>* recorded : {&video, &audio}) {
      const int64_t count = static_cast<int64_t>(recorded->size()) / draws;
      const std::vector<float> row(recorded->begin() + i * count,
                                   recorded->begin() + (i + 1) * count);
      EXPECT_EQ(Bits(loop.Draw(count, DType::kF32).value()), Bits(row)) << "draw " << i;
    }
  }
}

TEST(PipelineSeedTest, TheSeedGivesTheRecordedRun) {
  const GoldenCase golden = GoldenCase::Load(kCase).value();
  const auto device = cpu::CpuDevice::Create({}).value();
  GoldenOutputs outputs;
  const absl::Status status = RunLtxTinyDistilled(golden, GoldenContext{device.get(), "models"},
                                                  RunNoise::kGenerated, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<OutputComparison> comparisons = CompareOutputs(golden, outputs).value();
  for (const OutputComparison& output : comparisons) {
    EXPECT_TRUE(output.passed) << output.name << ": " << output.message;
  }
}

}  // namespace
}  // namespace ltx::golden
