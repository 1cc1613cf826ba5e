#include "engine/checkpoint/json_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(JsonTextTest, ParsesValues) {
  const auto json = ParseJsonObject(R"({"a":[1,{"b":"]}]}"}]})", "file: config");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["a"][1]["b"], "]}]}");
  EXPECT_TRUE(ParseJson("3", "x").ok());
}

TEST(JsonTextTest, RefusesWithTheSubject) {
  const std::string deep = absl::StrCat(std::string(100000, '['), std::string(100000, ']'));
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{} x"), std::string("{'a':1}"), deep,
        std::string(R"({"a":1,"a":2})"), std::string(R"({"x":{"a":1,"b":{"a":0},"a":2}})"),
        std::string(R"([{"a":1},{"a":1}])"), std::string("\"\xff\"")}) {
    const auto json = ParseJsonObject(text, "the file: config");
    EXPECT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 50);
    EXPECT_THAT(std::string(json.status().message()), HasSubstr("the file: config"));
  }
}

TEST(JsonTextTest, EqualKeysOfDifferentObjectsAreFine) {
  EXPECT_TRUE(ParseJson(R"([{"a":1},{"a":{"a":2}},{"b":[{"a":1}],"a":1}])", "x").ok());
}

TEST(JsonTextTest, DepthLimit) {
  const auto nested = [](int depth) {
    return absl::StrCat(std::string(depth, '['), std::string(depth, ']'));
  };
  EXPECT_TRUE(ParseJson(nested(64), "x").ok());
  EXPECT_FALSE(ParseJson(nested(65), "x").ok());
}

}  // namespace
}  // namespace ltx::checkpoint
