#include "server/tenant.h"

#include <string>

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

TEST(ParseTenantTest, TakesPlainNamesOnly) {
  EXPECT_EQ(*ParseTenant(""), kDefaultTenant);
  EXPECT_EQ(*ParseTenant("team-a_1.x"), "team-a_1.x");
  EXPECT_EQ(*ParseTenant(std::string(64, 'x')), std::string(64, 'x'));
  for (const std::string& bad : {std::string(65, 'x'), std::string("a b"), std::string("a\n"),
                                 std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    EXPECT_EQ(ParseTenant(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace ltx::server
