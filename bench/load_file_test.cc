#include "bench/load_file.h"

#include <string>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "tools/random_model/checkpoint_writer.h"
#include "tools/random_model/model_layout.h"
#include "tools/random_model/model_size.h"

namespace ltx::bench {
namespace {

TEST(LoadFileTest, LoadsWhatMakeCheckpointWrites) {
  const auto layout = random_model::TransformerFile(random_model::TinySize()).value();
  const std::string path = ::testing::TempDir() + "/transformer.safetensors";
  ASSERT_TRUE(random_model::WriteCheckpoint(layout, path, {}).ok());
  const auto device = cpu::CpuDevice::Create({}).value();
  const auto measured = MeasureLoad(path, *device, DType::kBF16, 2);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->at("seconds").at("all").size(), 2u);
  EXPECT_GT(measured->at("loaded_bytes").get<int64_t>(), 1 << 20);
  EXPECT_GT(measured->at("gigabytes_per_second").at("best").get<double>(), 0.0);
  // A CPU has no bus.
  EXPECT_FALSE(measured->contains("of_bus"));
}

TEST(LoadFileTest, AMissingFileIsNamed) {
  const auto device = cpu::CpuDevice::Create({}).value();
  const auto measured = MeasureLoad("/no/such/file", *device, DType::kBF16, 1);
  EXPECT_EQ(measured.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ltx::bench
