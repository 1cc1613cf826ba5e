#include "server/governor/rung_ladder.h"

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

TEST(RungLadderTest, ARequestBelongsToTheSmallestRungThatContainsIt) {
  const RungLadder ladder =
      RungLadder::Create(
          {Rung{"", {1280, 704, 121}}, Rung{"", {768, 448, 25}}, Rung{"", {768, 512, 121}}})
          .value();
  ASSERT_EQ(ladder.rungs().size(), 3);
  EXPECT_EQ(ladder.rungs()[0].name, "768x448x25");
  EXPECT_EQ(ladder.RungFor({768, 448, 25})->name, "768x448x25");
  EXPECT_EQ(ladder.RungFor({512, 512, 25})->name, "768x512x121");
  EXPECT_EQ(ladder.RungFor({768, 448, 33})->name, "768x512x121");
  EXPECT_EQ(ladder.RungFor({800, 448, 25})->name, "1280x704x121");
  EXPECT_EQ(ladder.RungFor({1280, 704, 129}), nullptr);
}

TEST(RungLadderTest, ARungHoldsClipsEitherWayUp) {
  const RungLadder ladder = RungLadder::Create({Rung{"", {768, 448, 25}}}).value();
  EXPECT_NE(ladder.RungFor({448, 768, 25}), nullptr);
  EXPECT_EQ(ladder.RungFor({512, 512, 25}), nullptr);
}

TEST(RungLadderTest, BadRungsAreRefusedByName) {
  const auto refused = [](const Rung& rung) {
    const auto ladder = RungLadder::Create({rung});
    return ladder.ok() ? std::string() : std::string(ladder.status().message());
  };
  EXPECT_NE(refused(Rung{"", {0, 448, 25}}).find("0x448x25"), std::string::npos);
  Rung negative = Rung{"", {768, 448, 25}};
  negative.name = "small";
  negative.max_seconds = -1;
  EXPECT_NE(refused(negative).find("small"), std::string::npos);
  EXPECT_FALSE(RungLadder::Create({Rung{"", {768, 448, 25}}, Rung{"", {768, 448, 25}}}).ok());
}

TEST(RungLadderTest, DefaultLadderFollowsTheModel) {
  const RungLadder ladder =
      RungLadder::FromModel({768, 512, 121}, {32, 32, 1}, {2048, 2048, 1001}, 64);
  EXPECT_EQ(ladder.rungs().front().name, "384x256x121");
  EXPECT_EQ(ladder.RungFor({768, 512, 121})->name, "768x512x121");
  EXPECT_EQ(ladder.RungFor({768, 512, 241})->name, "768x512x241");
  EXPECT_EQ(ladder.rungs().back().name, "2048x2048x1001");
  for (const Rung& rung : ladder.rungs()) {
    EXPECT_EQ(rung.geometry.width % 64, 0) << rung.name;
    EXPECT_EQ(rung.geometry.num_frames % 8, 1) << rung.name;
    EXPECT_EQ(rung.max_seconds, 0);
    EXPECT_EQ(rung.max_bytes, 0);
  }
}

TEST(RungLadderTest, DefaultLadderStaysInsideASmallModel) {
  const RungLadder ladder = RungLadder::FromModel({256, 192, 25}, {96, 96, 17}, {256, 256, 49}, 64);
  EXPECT_EQ(ladder.rungs().front().name, "128x128x25");
  EXPECT_EQ(ladder.rungs().back().name, "256x256x49");
  EXPECT_EQ(ladder.RungFor({256, 192, 25})->name, "256x192x25");
}

}  // namespace
}  // namespace ltx::server
