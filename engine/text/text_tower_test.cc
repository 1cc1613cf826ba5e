#include "engine/text/text_tower.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host_copy.h"

namespace ltx::text {
namespace {

using checkpoint::GemmaFamily;
using checkpoint::SafetensorsWriter;
using checkpoint::WeightLoader;
using checkpoint::WeightSet;
using nlohmann::json;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

absl::string_view DefaultPrefix(GemmaFamily family) {
  return family == GemmaFamily::kGemma3 ? "language_model.model." : "model.";
}

class TextTowerTest : public ::testing::TestWithParam<GemmaFamily> {
 protected:
  SafetensorsWriter Writer(absl::string_view prefix) const {
    SafetensorsWriter writer;
    AddRandom(TowerShapes(GetParam(), prefix), &writer);
    return writer;
  }
  SafetensorsWriter Writer() const { return Writer(DefaultPrefix(GetParam())); }

  absl::StatusOr<TextTower> Load(const SafetensorsWriter& writer, const json& config) {
    weights_ = OpenWeights(writer, "tower");
    const auto parsed = checkpoint::ParseGemmaConfig(config);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return TextTower::Load(
        *parsed, WeightLoader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText));
  }
  TextTower LoadOk(const SafetensorsWriter& writer) {
    auto tower = Load(writer, TinyGemmaConfig(GetParam()));
    EXPECT_TRUE(tower.ok()) << tower.status();
    return *std::move(tower);
  }

  static std::vector<Tensor> States(const TextTower& tower, const std::vector<int32_t>& ids,
                                    int64_t first_position = 0) {
    std::vector<Tensor> states;
    const absl::Status status = tower.Forward(ids, first_position, [&](const Tensor& state) {
      states.push_back(state);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return states;
  }
  /// State `index` of the token `row`.
  std::vector<float> Row(const TextTower& tower, const std::vector<int32_t>& ids, size_t index,
                         int64_t row, int64_t first_position = 0) {
    const std::vector<Tensor> states = States(tower, ids, first_position);
    const auto values = ToFloats(*device_, states.at(index));
    EXPECT_TRUE(values.ok());
    return {values->begin() + row * 8, values->begin() + (row + 1) * 8};
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  WeightSet weights_;
};

TEST_P(TextTowerTest, StatesStartWithTheScaledEmbedding) {
  const SafetensorsWriter writer = Writer();
  const TextTower tower = LoadOk(writer);
  const std::vector<Tensor> states = States(tower, {2, 5, 6}, 10);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(tower.num_states(), 3);
  for (const Tensor& state : states) EXPECT_EQ(state.shape(), Shape({1, 3, 8}));
  WeightLoader loader(device_.get(), &weights_, DType::kF32, MemoryOwner::kWeightsText);
  auto table =
      loader.GetHost(std::string(DefaultPrefix(GetParam())) + "embed_tokens.weight", {24, 8});
  ASSERT_TRUE(table.ok());
  std::vector<float> expected(table->begin() + 40, table->begin() + 48);
  for (float& value : expected) value *= std::sqrt(8.0f);
  EXPECT_THAT(Row(tower, {2, 5, 6}, 0, 1), Pointwise(FloatNear(1e-6f), expected));
}

TEST_P(TextTowerTest, StatesAreHandedOverOneByOneAndNotKept) {
  const TextTower tower = LoadOk(Writer());
  const int64_t loaded = device_->ledger().Read().total.live_bytes;
  int64_t before = 0;
  const std::vector<int32_t> ids(64, 5);
  int read = 0;
  const absl::Status whole = tower.Forward(ids, 0, [&](const Tensor& state) {
    const int64_t live = device_->ledger().Read().total.live_bytes;
    if (read++ == 0) before = live;
    EXPECT_EQ(live, before) << "state " << read << " of " << state.num_bytes() << " bytes";
    return absl::OkStatus();
  });
  ASSERT_TRUE(whole.ok()) << whole;
  EXPECT_EQ(read, 3);
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, loaded);
  // A reader that fails ends the run.
  read = 0;
  const absl::Status failed = tower.Forward(ids, 0, [&](const Tensor&) {
    return ++read == 2 ? absl::DataLossError("second state") : absl::OkStatus();
  });
  EXPECT_EQ(failed, absl::DataLossError("second state"));
  EXPECT_EQ(read, 2);
}

TEST_P(TextTowerTest, LaterTokensDoNotChangeEarlierOnes) {
  const TextTower tower = LoadOk(Writer());
  EXPECT_THAT(Row(tower, {2, 5, 6, 7, 8}, 2, 1),
              Pointwise(FloatNear(1e-5f), Row(tower, {2, 5}, 2, 1)));
}

TEST_P(TextTowerTest, OnlyRelativePositionsMatter) {
  const TextTower tower = LoadOk(Writer());
  EXPECT_THAT(Row(tower, {2, 5, 6, 7}, 2, 3, 900),
              Pointwise(FloatNear(1e-3f), Row(tower, {2, 5, 6, 7}, 2, 3, 0)));
}

TEST_P(TextTowerTest, SlidingLayersForgetWhatLeftTheWindow) {
  const TextTower tower = LoadOk(Writer());
  // State 1 is the output of the sliding layer: row 3 sees rows 1 to 3.
  EXPECT_THAT(Row(tower, {5, 6, 7, 8}, 1, 3),
              Pointwise(FloatNear(1e-6f), Row(tower, {9, 6, 7, 8}, 1, 3)));
  EXPECT_THAT(Row(tower, {5, 6, 7, 8}, 1, 3),
              Not(Pointwise(FloatNear(1e-6f), Row(tower, {5, 9, 7, 8}, 1, 3))));
  // The full layer sees row 0.
  EXPECT_THAT(Row(tower, {5, 6, 7, 8}, 2, 3),
              Not(Pointwise(FloatNear(1e-6f), Row(tower, {9, 6, 7, 8}, 2, 3))));
}

TEST_P(TextTowerTest, PlaceholdersOfImages) {
  const TextTower tower = LoadOk(Writer());
  // Token 20 stands for an image. Gemma 4 reads it as padding; Gemma 3 has a row for it.
  const auto same_as_padding = Pointwise(FloatNear(1e-6f), Row(tower, {2, 0}, 0, 1));
  if (GetParam() == GemmaFamily::kGemma4) {
    EXPECT_THAT(Row(tower, {2, 20}, 0, 1), same_as_padding);
    EXPECT_THAT(Row(tower, {2, 21}, 0, 1), same_as_padding);
    EXPECT_THAT(Row(tower, {2, 22}, 0, 1), same_as_padding);
  } else {
    EXPECT_THAT(Row(tower, {2, 20}, 0, 1), Not(same_as_padding));
  }
}

TEST_P(TextTowerTest, CachedTokensGiveTheSameStates) {
  const TextTower tower = LoadOk(Writer());
  const std::vector<int32_t> ids = {2, 5, 6, 7, 8, 9, 10, 5};
  KeyValueCache cache = tower.MakeCache(static_cast<int64_t>(ids.size()));
  ASSERT_TRUE(tower.ReadOn({2, 5, 6}, &cache).ok());
  for (size_t i = 3; i < ids.size(); ++i) {
    const auto state = tower.ReadOn({ids[i]}, &cache);
    ASSERT_TRUE(state.ok()) << state.status();
    const auto last = ToFloats(*device_, *state);
    ASSERT_TRUE(last.ok());
    EXPECT_THAT(*last, Pointwise(FloatNear(1e-4f), Row(tower, ids, 2, static_cast<int64_t>(i))));
  }
  EXPECT_EQ(tower.ReadOn({5, 6}, &cache).status().code(), absl::StatusCode::kInternal);
}

TEST_P(TextTowerTest, CachedTokensAcrossBlocksOfTheCache) {
  const TextTower tower = LoadOk(Writer());
  constexpr int kTokens = 2 * KeyValueCache::kBlock + 3;
  std::vector<int32_t> ids(kTokens);
  for (int i = 0; i < kTokens; ++i) ids[i] = 5 + i * i % 7;
  const int64_t before = device_->ledger().Read().total.live_bytes;
  {
    KeyValueCache cache = tower.MakeCache(kTokens);
    ASSERT_TRUE(tower.ReadOn({ids[0], ids[1]}, &cache).ok());
    const int64_t held = device_->ledger().Read().total.live_bytes;
    EXPECT_GT(held, before);
    for (int i = 2; i < kTokens; ++i) {
      const auto state = tower.ReadOn({ids[i]}, &cache);
      ASSERT_TRUE(state.ok()) << state.status();
      // Around the borders of blocks; each length costs new kernels.
      if (i % KeyValueCache::kBlock > 1 && i % KeyValueCache::kBlock < 63) continue;
      const absl::Span<const int32_t> so_far = absl::MakeConstSpan(ids).subspan(0, i + 1);
      EXPECT_THAT(*ToFloats(*device_, *state),
                  Pointwise(FloatNear(1e-4f), Row(tower, {so_far.begin(), so_far.end()}, 2, i)));
    }
    // Masks apart, no token costs memory of its own.
    EXPECT_LE(device_->ledger().Read().total.live_bytes, held + int64_t{4} * kTokens);
  }
  EXPECT_EQ(device_->ledger().Read().total.live_bytes, before);
  KeyValueCache full = tower.MakeCache(KeyValueCache::kBlock);
  ids.resize(KeyValueCache::kBlock);
  ASSERT_TRUE(tower.ReadOn(ids, &full).ok());
  EXPECT_EQ(tower.ReadOn({5}, &full).status().code(), absl::StatusCode::kInternal);
}

TEST_P(TextTowerTest, RefusesTokensOutsideOfTheTable) {
  const TextTower tower = LoadOk(Writer());
  for (const int32_t id : {-1, 24}) {
    const absl::Status status =
        tower.Forward({2, id}, 0, [](const Tensor&) { return absl::OkStatus(); });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::to_string(id)));
  }
}

TEST_P(TextTowerTest, FindsTheNestedPrefix) {
  const TextTower flat = LoadOk(Writer());
  const std::vector<float> expected = Row(flat, {2}, 0, 0);
  const TextTower nested = LoadOk(Writer("model.language_model."));
  EXPECT_EQ(nested.num_states(), 3);
}

TEST_P(TextTowerTest, NamesWhatDoesNotFit) {
  const std::string prefix(DefaultPrefix(GetParam()));
  const json config = TinyGemmaConfig(GetParam());
  SafetensorsWriter writer = Writer();
  const std::string missing = prefix + "layers.1.mlp.up_proj.weight";
  absl::Status status = Load(writer.Remove(missing), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(missing));

  writer = Writer();
  status = Load(writer.Reshape(prefix + "norm.weight", {9}), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(prefix + "norm.weight"));

  writer = Writer();
  const std::string surplus = prefix + "layers.2.layer_scalar";
  status = Load(writer.Floats(surplus, {1}, {1.0f}), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(surplus));

  status = Load(SafetensorsWriter().Floats("other", {1}, {1.0f}), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("layers.0"));
}

TEST_P(TextTowerTest, SoftCapsLogitsOfGemma4) {
  json config = TinyGemmaConfig(GetParam());
  config["text_config"]["final_logit_softcapping"] = 0.01;
  auto tower = Load(Writer(), config);
  ASSERT_TRUE(tower.ok()) << tower.status();
  const std::vector<Tensor> states = States(*tower, {2, 5});
  const auto head = tower->PrepareLogitHead();
  ASSERT_TRUE(head.ok()) << head.status();
  const auto logits = tower->Logits(states.back(), *head);
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->shape(), Shape({1, 2, 24}));
  const auto values = ToFloats(*device_, *logits);
  ASSERT_TRUE(values.ok());
  const auto capped = Each(FloatNear(0.0f, 0.0101f));
  if (GetParam() == GemmaFamily::kGemma4) {
    EXPECT_THAT(*values, capped);
  } else {
    EXPECT_THAT(*values, Not(capped));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TextTowerTest,
                         ::testing::Values(GemmaFamily::kGemma3, GemmaFamily::kGemma4),
                         [](const auto& info) {
                           return info.param == GemmaFamily::kGemma3 ? "Gemma3" : "Gemma4";
                         });

}  // namespace
}  // namespace ltx::text
