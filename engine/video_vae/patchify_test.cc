#include "engine/video_vae/patchify.h"

#include "engine/video_vae/test_weights.h"
#include "gmock/gmock.h"

namespace ltx::video_vae {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PatchifyTest : public VideoVaeTest {};

TEST_F(PatchifyTest, OrdersChannelsByColourColumnRow) {
  // One 2x2 patch of two colours; element (row, column, c) holds 4 row + 2 column + c.
  const Tensor patches = Patchify(device(), Iota(Shape({1, 1, 2, 2, 2})), 2).value();
  EXPECT_EQ(patches.shape(), Shape({1, 1, 1, 1, 8}));
  EXPECT_THAT(Values(patches), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
}

TEST_F(PatchifyTest, UnpatchifyInverts) {
  const Tensor x = Iota(Shape({2, 3, 4 * 3, 4 * 5, 3}));
  const Tensor patches = Patchify(device(), x, 4).value();
  EXPECT_EQ(patches.shape(), Shape({2, 3, 3, 5, 48}));
  const Tensor back = Unpatchify(device(), patches, 4).value();
  EXPECT_EQ(back.shape(), x.shape());
  EXPECT_EQ(Values(back), Values(x));
}

TEST_F(PatchifyTest, RefusesPartialPatches) {
  const auto patches = Patchify(device(), Iota(Shape({1, 1, 4, 6, 3})), 4);
  EXPECT_EQ(patches.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(patches.status().message()), HasSubstr("width 6"));
}

}  // namespace
}  // namespace ltx::video_vae
