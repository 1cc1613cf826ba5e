#include "engine/checkpoint/model_version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ModelVersionTest, StopsAtTheFirstPartThatIsNoInteger) {
  EXPECT_THAT(ParseModelVersion("2.3.0"), ElementsAre(2, 3, 0));
  EXPECT_THAT(ParseModelVersion("2.3.rc1"), ElementsAre(2, 3));
  EXPECT_THAT(ParseModelVersion("2.4-rc2"), ElementsAre(2));
  EXPECT_THAT(ParseModelVersion("2"), ElementsAre(2));
  for (const char* text : {"", "x", "-2.3", "+2", " 2", "v2.3", ".2", "99999999999999999999"}) {
    EXPECT_THAT(ParseModelVersion(text), IsEmpty()) << text;
  }
}

TEST(ModelVersionTest, TheOtherFormReadsDashesAsDots) {
  EXPECT_THAT(ParseModelVersionForDefaults("2.4-rc2"), ElementsAre(2, 4));
  EXPECT_THAT(ParseModelVersionForDefaults("2.5-1"), ElementsAre(2, 5, 1));
}

TEST(ModelVersionTest, Order) {
  EXPECT_LT(ParseModelVersion("2.4"), ParseModelVersion("2.4.0"));
  EXPECT_LT(ParseModelVersion("2.9"), ParseModelVersion("2.10"));
  EXPECT_LT(ParseModelVersion("?"), ParseModelVersion("0"));
}

}  // namespace
}  // namespace ltx::checkpoint
