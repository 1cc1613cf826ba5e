#include "engine/pipeline/fused_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/checkpoint/test_files.h"
#include "engine/dit/test_model.h"
#include "engine/dit/transformer.h"
#include "engine/pipeline/fused_transformer.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::pipeline {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsWriter;
using dit::RandomValues;

constexpr int64_t kPlenty = int64_t{1} << 40;
constexpr char kPrefix[] = "model.diffusion_model.";
constexpr char kQuery[] = "transformer_blocks.0.attn1.to_q";
constexpr char kFeedForward[] = "transformer_blocks.1.ff.net.2";

/// A small transformer on the CPU and a LoRA that changes one projection of a joined product and
/// one weight of its own.
class FusedCacheTest : public testing::Test {
 protected:
  FusedCacheTest() : folder_(checkpoint::MakeTestFolder("fused_cache")) {
    dit::TensorShapes shapes;
    for (const auto& [name, shape] : dit::ShapesOf(dit::SmallConfig())) {
      shapes[kPrefix + name] = shape;
    }
    source_ = {dit::RandomFile(shapes), dit::SmallConfig(), DType::kF32,
               std::make_shared<checkpoint::LinearPool>()};
    clean_ = LoadTransformer(device_.get(), source_).value();
    SafetensorsWriter writer;
    for (const char* module : {kQuery, kFeedForward}) {
      const Shape& shape = shapes.at(kPrefix + std::string(module) + ".weight");
      writer.Floats(std::string(module) + ".lora_A.weight", {2, shape.dim(1)},
                    RandomValues(2 * shape.dim(1), 70));
      writer.Floats(std::string(module) + ".lora_B.weight", {shape.dim(0), 2},
                    RandomValues(shape.dim(0) * 2, 71));
    }
    lora_ = Lora(writer, "adapter.safetensors");
    cache_ = FusedCache::Create(device_.get(), source_, lora_).value();
    clean_bytes_ = DitBytes();
  }

  std::shared_ptr<const lora::LoraFile> Lora(const SafetensorsWriter& writer,
                                             const std::string& name) {
    writer.WriteTo(folder_ + "/" + name);
    return lora::LoraFile::Parse(*SafetensorsFile::Open(folder_ + "/" + name), {}).value();
  }
  int64_t DitBytes() const {
    return device_->ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWeightsDit)].live_bytes;
  }
  /// How many copies the cache says there are; the ledger agrees.
  int64_t Copies() const {
    const FusedCache::Stats stats = cache_->stats();
    EXPECT_EQ(DitBytes(), clean_bytes_ + stats.bytes);
    return stats.entries;
  }
  std::vector<float> Run(const dit::Transformer& model) {
    dit::TestInputs inputs;
    const auto pair = inputs.Run(model).value();
    std::vector<float> values = dit::Values(*device_, pair.video);
    const std::vector<float> audio = dit::Values(*device_, pair.audio);
    values.insert(values.end(), audio.begin(), audio.end());
    return values;
  }
  std::shared_ptr<const dit::Transformer> Get(double strength) {
    return cache_->Get(strength).value();
  }

  const std::string folder_;
  std::unique_ptr<cpu::CpuDevice> device_ = dit::TestDevice();
  TransformerSource source_;
  std::unique_ptr<dit::Transformer> clean_;
  std::shared_ptr<const lora::LoraFile> lora_;
  std::unique_ptr<FusedCache> cache_;
  int64_t clean_bytes_ = 0;
};

TEST_F(FusedCacheTest, AKeptCopyGivesTheBitsOfAFreshOneAndOfOneThatSharesNothing) {
  TransformerSource alone = source_;
  alone.linears = nullptr;
  const auto reference = LoadFusedTransformer(device_.get(), alone, lora_, 0.5).value();
  const std::vector<float> expected = Run(*reference);
  cache_->Keep(kPlenty);
  EXPECT_EQ(Run(*Get(0.5)), expected);
  EXPECT_EQ(cache_->stats().fusions, 1u);
  EXPECT_EQ(Run(*Get(0.5)), expected);
  EXPECT_EQ(cache_->stats().hits, 1u);
  EXPECT_EQ(cache_->stats().fusions, 1u);
  // The clean transformer is what it was.
  EXPECT_NE(Run(*clean_), expected);
  EXPECT_EQ(Run(*clean_), Run(*LoadTransformer(device_.get(), alone).value()));
  EXPECT_NE(Run(*Get(0.25)), expected);
}

TEST_F(FusedCacheTest, OnlyWhatTheLoraChangesIsCopied) {
  TransformerSource alone = source_;
  alone.linears = nullptr;
  const int64_t before = DitBytes();
  const auto whole = LoadFusedTransformer(device_.get(), alone, lora_, 0.5).value();
  const int64_t whole_bytes = DitBytes() - before;
  const int64_t from_shapes = cache_->copy_bytes();
  const auto shared = Get(0.5);
  EXPECT_EQ(DitBytes() - before - whole_bytes, cache_->copy_bytes());
  EXPECT_LT(cache_->copy_bytes(), whole_bytes / 2);
  EXPECT_GT(from_shapes, 0);
  EXPECT_LT(from_shapes, whole_bytes / 2);
}

TEST_F(FusedCacheTest, WithoutRoomACopyGoesWithItsLastUser) {
  auto first = Get(0.5);
  auto second = Get(0.5);
  EXPECT_EQ(Copies(), 1);
  EXPECT_EQ(cache_->stats().bytes_in_use, cache_->copy_bytes());
  first.reset();
  EXPECT_EQ(Copies(), 1);
  second.reset();
  EXPECT_EQ(DitBytes(), clean_bytes_);
  EXPECT_EQ(cache_->stats().entries, 0);
}

TEST_F(FusedCacheTest, TheLeastRecentlyUsedGoesByName) {
  cache_->Keep(kPlenty);
  Get(0.25);
  Get(0.5);
  Get(0.25);
  EXPECT_EQ(Copies(), 2);
  EXPECT_EQ(cache_->stats().bytes_in_use, 0);
  EXPECT_EQ(cache_->Keep(2 * cache_->copy_bytes() - 1),
            (std::vector<std::string>{"adapter.safetensors at 0.5"}));
  EXPECT_EQ(Copies(), 1);
  EXPECT_TRUE(cache_->Keep(cache_->copy_bytes()).empty());
  EXPECT_EQ(cache_->stats().hits, 1u);
  Get(0.25);
  EXPECT_EQ(cache_->stats().hits, 2u);
  EXPECT_EQ(cache_->Keep(0), (std::vector<std::string>{"adapter.safetensors at 0.25"}));
  EXPECT_EQ(DitBytes(), clean_bytes_);
  EXPECT_EQ(cache_->stats().evictions, 2u);
}

TEST_F(FusedCacheTest, ANewCopyTakesThePlaceOfAnotherBeforeItIsMade) {
  cache_->Keep(kPlenty);
  Get(0.25);
  EXPECT_TRUE(cache_->Keep(cache_->copy_bytes()).empty());
  device_->ledger().ResetPeaks();
  const auto in_use = Get(0.5);
  const MemoryLedger::Snapshot memory = device_->ledger().Read();
  EXPECT_EQ(memory.by_owner[static_cast<int>(MemoryOwner::kWeightsDit)].peak_bytes,
            clean_bytes_ + cache_->copy_bytes());
  // What is in use stays, whatever the limit.
  EXPECT_TRUE(cache_->Keep(0).empty());
  EXPECT_EQ(Copies(), 1);
}

TEST_F(FusedCacheTest, StrengthsThatComeOnceDoNotFillTheDevice) {
  cache_->Keep(kPlenty);
  for (const double strength : {0.1, 0.2, 0.3, 0.4, 0.6}) Get(strength);
  EXPECT_EQ(Copies(), 2);
}

TEST_F(FusedCacheTest, ALoraOfAnotherModelIsRefusedWithTheModulesThatAreMissing) {
  SafetensorsWriter writer;
  for (const char* module : {kQuery, "transformer_blocks.7.attn1.to_q", "speech.proj"}) {
    writer.Floats(std::string(module) + ".lora_A.weight", {2, 16}, RandomValues(32, 70));
    writer.Floats(std::string(module) + ".lora_B.weight", {16, 2}, RandomValues(32, 71));
  }
  const auto cache = FusedCache::Create(device_.get(), source_, Lora(writer, "other.safetensors"));
  EXPECT_EQ(cache.status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"other.safetensors", "speech.proj", "transformer_blocks.7.attn1.to_q"}) {
    EXPECT_TRUE(absl::StrContains(cache.status().message(), part)) << cache.status();
  }
}

}  // namespace
}  // namespace ltx::pipeline
