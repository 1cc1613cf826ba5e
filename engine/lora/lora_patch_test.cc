#include "engine/lora/lora_patch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/checkpoint/test_files.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/dit/test_model.h"

namespace ltx::lora {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsWriter;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using dit::RandomValues;
using Unmatched = LoraPatch::Unmatched;

constexpr char kPrefix[] = "model.diffusion_model.";

class LoraPatchTest : public testing::Test {
 protected:
  LoraPatchTest() : folder_(checkpoint::MakeTestFolder("lora_patch")), device_(dit::TestDevice()) {}

  std::shared_ptr<const SafetensorsFile> Write(const SafetensorsWriter& writer) {
    const std::string path = folder_ + "/" + std::to_string(files_++) + ".safetensors";
    writer.WriteTo(path);
    return *SafetensorsFile::Open(path);
  }
  WeightedLora Lora(const SafetensorsWriter& writer, double strength) {
    return {*LoraFile::Parse(Write(writer), {}), strength};
  }
  /// Factors of rank 2 for [3, 4], from a seed.
  static SafetensorsWriter Factors(const std::string& module, uint32_t seed) {
    SafetensorsWriter writer;
    writer.BFloat16s("diffusion_model." + module + ".lora_A.weight", {2, 4}, RandomValues(8, seed));
    writer.BFloat16s("diffusion_model." + module + ".lora_B.weight", {3, 2},
                     RandomValues(6, seed + 1));
    return writer;
  }
  void AddWeights(const SafetensorsWriter& writer) {
    ASSERT_TRUE(weights_.Add(Write(writer)).ok());
  }
  std::vector<float> Fused(const LoraPatch& patch, const std::string& name,
                           const std::vector<float>& weight, DType dtype) {
    const Tensor tensor = *TensorFromFloats(*device_, weight, {3, 4}, dtype);
    const auto fused = patch.Apply(*device_, name, tensor);
    EXPECT_TRUE(fused.ok()) << fused.status();
    EXPECT_EQ(fused->dtype(), dtype);
    return *ToFloats(*device_, *fused);
  }
  static float Round(float value, DType dtype) {
    return dtype == DType::kBF16 ? RoundToBFloat16(value) : value;
  }
  /// up @ down of Factors(seed), `factor` multiplied into up and rounded there.
  static std::vector<float> Product(uint32_t seed, float factor, DType dtype) {
    const std::vector<float> down = RandomValues(8, seed), up = RandomValues(6, seed + 1);
    std::vector<float> product(12);
    for (int n = 0; n < 3; ++n) {
      for (int k = 0; k < 4; ++k) {
        for (int r = 0; r < 2; ++r) {
          product[n * 4 + k] += Round(RoundToBFloat16(up[n * 2 + r]) * factor, dtype) *
                                RoundToBFloat16(down[r * 4 + k]);
        }
      }
    }
    return product;
  }

  const std::string folder_;
  int files_ = 0;
  std::unique_ptr<cpu::CpuDevice> device_;
  WeightSet weights_;
};

TEST_F(LoraPatchTest, RoundsWhereTheReferenceDoes) {
  const std::vector<float> weight = RandomValues(12, 5);
  AddWeights(SafetensorsWriter().Floats(std::string(kPrefix) + "a.weight", {3, 4}, weight));
  const auto patch =
      *LoraPatch::Create({Lora(Factors("a", 10), 0.8), Lora(Factors("a", 20), -0.35)}, weights_,
                         kPrefix, Unmatched::kRefuse);
  EXPECT_EQ(patch->Names(), (std::vector<std::string>{std::string(kPrefix) + "a.weight"}));
  EXPECT_EQ(patch->changed_elements(), 12);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<float> first = Product(10, 0.8f, dtype), second = Product(20, 1.0f, dtype);
    const std::vector<float> fused = Fused(*patch, patch->Names()[0], weight, dtype);
    for (int i = 0; i < 12; ++i) {
      const float once = Round(first[i], dtype);
      const float twice = Round(once - 0.35f * second[i], dtype);
      const float want = Round(Round(weight[i], dtype) + twice, dtype);
      // In bf16 the sums of two products can only differ where a rounding is a tie.
      EXPECT_NEAR(fused[i], want, 1e-6f) << i << " " << DTypeName(dtype);
    }
  }
}

TEST_F(LoraPatchTest, AlphaAndStrengthMultiply) {
  AddWeights(SafetensorsWriter().Floats("a.weight", {3, 4}, RandomValues(12, 5)));
  SafetensorsWriter with_alpha = Factors("a", 10);
  with_alpha.Floats("diffusion_model.a.alpha", {}, {1.0f});  // Of rank 2.
  const auto halved = *LoraPatch::Create({Lora(with_alpha, 0.8)}, weights_, "", Unmatched::kRefuse);
  const auto direct =
      *LoraPatch::Create({Lora(Factors("a", 10), 0.4)}, weights_, "", Unmatched::kRefuse);
  const std::vector<float> weight = RandomValues(12, 5);
  EXPECT_EQ(Fused(*halved, "a.weight", weight, DType::kF32),
            Fused(*direct, "a.weight", weight, DType::kF32));
}

TEST_F(LoraPatchTest, StrengthZeroChangesNothing) {
  AddWeights(SafetensorsWriter().Floats("a.weight", {3, 4}, RandomValues(12, 5)));
  const auto patch =
      *LoraPatch::Create({Lora(Factors("a", 10), 0.0)}, weights_, "", Unmatched::kRefuse);
  EXPECT_TRUE(patch->Names().empty());
  EXPECT_FALSE(patch->Changes("a.weight"));
  EXPECT_EQ(patch->changed_elements(), 0);
}

TEST_F(LoraPatchTest, ModulesThatTheModelLacks) {
  AddWeights(SafetensorsWriter().Floats("a.weight", {3, 4}, RandomValues(12, 5)));
  SafetensorsWriter writer = Factors("a", 10);
  for (const char* module : {"x", "y"}) {
    const std::string name = std::string("diffusion_model.") + module;
    writer.Floats(name + ".lora_A.weight", {2, 4}, RandomValues(8, 1));
    writer.Floats(name + ".lora_B.weight", {3, 2}, RandomValues(6, 2));
  }
  const absl::Status refused =
      LoraPatch::Create({Lora(writer, 1.0)}, weights_, "", Unmatched::kRefuse).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(refused.message(), "2 modules are not in the transformer: x, y"));
  const auto skipping = LoraPatch::Create({Lora(writer, 1.0)}, weights_, "", Unmatched::kSkip);
  ASSERT_TRUE(skipping.ok()) << skipping.status();
  EXPECT_EQ((*skipping)->skipped(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ((*skipping)->Names(), (std::vector<std::string>{"a.weight"}));
  // A file for another model is refused either way.
  EXPECT_EQ(LoraPatch::Create({Lora(Factors("z", 1), 1.0)}, weights_, "", Unmatched::kSkip)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LoraPatchTest, ShapesMustFit) {
  AddWeights(SafetensorsWriter()
                 .Floats("a.weight", {4, 3}, RandomValues(12, 5))
                 .Floats("norm.weight", {3}, RandomValues(3, 5)));
  for (const char* module : {"a", "norm"}) {
    const absl::Status status =
        LoraPatch::Create({Lora(Factors(module, 10), 1.0)}, weights_, "", Unmatched::kSkip)
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), "make an update of [3, 4]")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), std::string(module) + ".weight")) << status;
  }
}

TEST_F(LoraPatchTest, RefusesQuantisedWeightsAndStrengthsThatAreNoNumbers) {
  AddWeights(SafetensorsWriter().Raw("a.weight", DType::kF8E4M3, {3, 4}, std::string(12, '\0')));
  const absl::Status quantised =
      LoraPatch::Create({Lora(Factors("a", 10), 1.0)}, weights_, "", Unmatched::kRefuse).status();
  EXPECT_EQ(quantised.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(quantised.message(), "a.weight"));
  EXPECT_EQ(
      LoraPatch::Create({Lora(Factors("a", 10), std::nan(""))}, weights_, "", Unmatched::kRefuse)
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(LoraPatchTest, RefusesAResultThatIsNotFinite) {
  AddWeights(SafetensorsWriter().Floats("a.weight", {3, 4}, RandomValues(12, 5)));
  SafetensorsWriter writer = Factors("a", 10);
  writer.Floats("diffusion_model.a.lora_B.weight", {3, 2},
                {std::numeric_limits<float>::infinity(), 0, 0, 0, 0, 0});
  const auto patch = *LoraPatch::Create({Lora(writer, 1.0)}, weights_, "", Unmatched::kRefuse);
  const Tensor weight = *TensorFromFloats(*device_, RandomValues(12, 5), {3, 4});
  const absl::Status status = patch->Apply(*device_, "a.weight", weight).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "a.weight"));
}

/// A transformer loaded through the patch equals one whose file holds the fused weights, whether a
/// module is loaded by itself or side by side with others; loading without it gives the base.
TEST_F(LoraPatchTest, FusesTheWeightsOfATransformerAtLoad) {
  const checkpoint::TransformerConfig config = dit::SmallConfig();
  const dit::TensorShapes shapes = dit::ShapesOf(config);
  const auto base = dit::RandomFile(shapes);
  const auto merged = dit::RandomFile(shapes);
  SafetensorsWriter writer;
  for (const std::string module :
       {"transformer_blocks.1.attn1.to_k", "transformer_blocks.0.audio_ff.net.2",
        "adaln_single.linear", "patchify_proj", "transformer_blocks.0.attn2.to_gate_logits"}) {
    const Shape shape = shapes.at(module + ".weight");
    const int64_t out = shape.dim(0), in = shape.dim(1);
    const std::vector<float> down = RandomValues(in, 31), up = RandomValues(out, 32);
    writer.Floats("diffusion_model." + module + ".lora_A.weight", {1, in}, down);
    writer.Floats("diffusion_model." + module + ".lora_B.weight", {out, 1}, up);
    std::vector<float> values(shape.num_elements());
    std::memcpy(values.data(), base->entries().at(module + ".weight").bytes.data(),
                values.size() * sizeof(float));
    for (int64_t n = 0; n < out; ++n) {
      for (int64_t k = 0; k < in; ++k) values[n * in + k] += 0.5f * up[n] * down[k];
    }
    merged->Set(module + ".weight", shape, values);
  }
  ASSERT_TRUE(weights_.Add(base).ok());
  const auto patch = *LoraPatch::Create({Lora(writer, 0.5)}, weights_, "", Unmatched::kRefuse);
  const WeightLoader loader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsDit);
  const auto fused =
      dit::Transformer::Load(config, dit::ModelClass::kAudioVideo, loader.WithPatch(patch.get()));
  ASSERT_TRUE(fused.ok()) << fused.status();
  const auto want = dit::LoadModel(*device_, config, merged);
  const auto plain = dit::LoadModel(*device_, config, base);
  const auto run = [&](const dit::Transformer& model) {
    dit::TestInputs inputs;
    const auto velocity = inputs.Run(model);
    EXPECT_TRUE(velocity.ok()) << velocity.status();
    std::vector<float> values = dit::Values(*device_, velocity->video);
    const std::vector<float> audio = dit::Values(*device_, velocity->audio);
    values.insert(values.end(), audio.begin(), audio.end());
    return values;
  };
  EXPECT_LT(dit::RelativeDistance(run(**fused), run(**want)), 1e-5);
  EXPECT_GT(dit::RelativeDistance(run(**fused), run(**plain)), 1e-2);
  // Loading again without the patch starts from the clean files.
  const WeightLoader again(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsDit);
  EXPECT_EQ(run(**dit::Transformer::Load(config, dit::ModelClass::kAudioVideo, again)),
            run(**plain));
}

TEST_F(LoraPatchTest, AWeightThatIsLoadedAsSomethingElseIsAnError) {
  AddWeights(SafetensorsWriter().Floats("table.weight", {3, 4}, RandomValues(12, 5)));
  const auto patch =
      *LoraPatch::Create({Lora(Factors("table", 10), 1.0)}, weights_, "", Unmatched::kRefuse);
  WeightLoader loader =
      WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsDit)
          .WithPatch(patch.get());
  ASSERT_TRUE(loader.Get("table.weight", {3, 4}).ok());
  EXPECT_EQ(loader.CheckAllConsumed().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ltx::lora
