#include "tools/random_model/random_file.h"

#include <string>

#include "engine/checkpoint/element_decode.h"
#include "gtest/gtest.h"

namespace ltx::random_model {
namespace {

TEST(RandomFileTest, HoldsWhatTheLayoutSays) {
  FileLayout layout;
  layout.path = "somewhere";
  layout.metadata["config"] = "{}";
  layout.tensors = {{"a.weight", {100, 300}}, {"b.weight", {100, 300}}, {"q_norm.weight", {500}}};
  layout.texts["note"] = "text";
  const RandomFile file(layout);
  EXPECT_EQ(file.tensor_bytes(), 2 * (2 * 30000 + 500) + 4);
  EXPECT_EQ(file.path(), "somewhere");
  EXPECT_EQ(file.metadata().at("config"), "{}");
  const auto& note = file.entries().at("note");
  EXPECT_EQ(std::string(note.bytes.begin(), note.bytes.end()), "text");
  EXPECT_EQ(file.entries().at("a.weight").shape, Shape({100, 300}));
  // Of one range, yet not the same.
  EXPECT_NE(checkpoint::DecodeFloats(file.entries().at("a.weight")),
            checkpoint::DecodeFloats(file.entries().at("b.weight")));
  for (const float value : checkpoint::DecodeFloats(file.entries().at("q_norm.weight"))) {
    EXPECT_NEAR(value, 1.0f, 0.1f);
  }
}

TEST(RandomFileTest, ASetPassesTheChecksOfRealOnes) {
  const auto set = RandomModelSet(TinySize());
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->name, "random");
  EXPECT_EQ(set->kind, checkpoint::ModelKind::kDistilled);
  EXPECT_EQ(set->gemma.vocab_size, TinySize().vocabulary);
  EXPECT_TRUE(set->spatial_upsampler.has_value());
  EXPECT_NE(set->text_encoder_file, nullptr);
  EXPECT_TRUE(set->unrecognised_files.empty());
}

}  // namespace
}  // namespace ltx::random_model
