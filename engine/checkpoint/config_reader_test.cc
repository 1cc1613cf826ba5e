#include "engine/checkpoint/config_reader.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MessageOf(const ConfigReader& reader) { return std::string(reader.status().message()); }

TEST(ConfigReaderTest, ValuesAndDefaults) {
  const nlohmann::json json = {{"i", 3},       {"f", 2.0},       {"x", 0.5},
                               {"b", true},    {"s", "word"},    {"l", {1, 2.0, 3}},
                               {"n", nullptr}, {"o", {{"k", 7}}}};
  ConfigReader reader(json, "config");
  EXPECT_EQ(reader.Int("i", 0, 1, 3), 3);
  EXPECT_EQ(reader.Int("f", 0, 0, 9), 2);
  EXPECT_EQ(reader.Int("absent", 5, 6, 9), 5);
  EXPECT_EQ(reader.Number("x", 1.0, 0.0, 1.0), 0.5);
  EXPECT_EQ(reader.Number("i", 1.0, 0.0, 9.0), 3.0);
  EXPECT_TRUE(reader.Bool("b", false));
  EXPECT_EQ(reader.String("s", ""), "word");
  EXPECT_THAT(reader.Ints("l", {}, 3, 3, 1, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(reader.Ints("absent", {4}, 0, 9, 0, 9), ElementsAre(4));
  EXPECT_TRUE(reader.Has("n"));
  EXPECT_FALSE(reader.HasValue("n"));
  EXPECT_EQ(reader.Object("o").Int("k", 0, 0, 9), 7);
  EXPECT_EQ(reader.Object("absent").Int("k", 1, 0, 9), 1);
  EXPECT_EQ((reader.OneOf<int>("s", 0, {{"other", 1}, {"word", 2}})), 2);
  EXPECT_TRUE(reader.status().ok()) << reader.status();
}

TEST(ConfigReaderTest, MessagesNamePathValueAndRange) {
  const nlohmann::json json = {{"o", {{"k", -7}}}};
  ConfigReader reader(json, "config");
  EXPECT_EQ(reader.Object("o").Int("k", 2, 1, 9), 2);
  EXPECT_EQ(MessageOf(reader), "config.o.k is -7, legal is an integer from 1 to 9");
}

TEST(ConfigReaderTest, TheFirstErrorStays) {
  const nlohmann::json json = {{"a", "x"}, {"b", "y"}};
  ConfigReader reader(json, "config");
  reader.Int("a", 0, 0, 9);
  reader.Bool("b", false);
  EXPECT_THAT(MessageOf(reader), HasSubstr("config.a"));
}

TEST(ConfigReaderTest, RefusesWrongTypesAndRanges) {
  const nlohmann::json bad_ints = {
      "1", 1.5, true, nullptr, 10, -1, 1e300, 18446744073709551615ull, nlohmann::json::array()};
  for (const nlohmann::json& value : bad_ints) {
    const nlohmann::json json = {{"k", value}};
    ConfigReader reader(json, "c");
    EXPECT_EQ(reader.Int("k", 4, 0, 9), 4);
    EXPECT_EQ(reader.status().code(), absl::StatusCode::kInvalidArgument) << value;
  }
  for (const char* text : {R"({"k":"x"})", R"({"k":null})", R"({"k":2})", R"({"k":[]})"}) {
    const nlohmann::json json = nlohmann::json::parse(text);
    ConfigReader number(json, "c");
    number.Number("k", 0.0, 0.0, 1.0);
    EXPECT_FALSE(number.status().ok()) << text;
    ConfigReader boolean(json, "c");
    boolean.Bool("k", false);
    EXPECT_FALSE(boolean.status().ok()) << text;
    ConfigReader list(json, "c");
    list.Ints("k", {}, 1, 2, 0, 9);
    EXPECT_FALSE(list.status().ok()) << text;
    ConfigReader object(json, "c");
    object.Object("k");
    EXPECT_FALSE(object.status().ok()) << text;
  }
  const nlohmann::json lists = {{1, 2, 3}, {1, 10}, {1, "2"}, {{1}}};
  for (const nlohmann::json& value : lists) {
    const nlohmann::json json = {{"k", value}};
    ConfigReader reader(json, "c");
    reader.Ints("k", {}, 1, 2, 0, 9);
    EXPECT_FALSE(reader.status().ok()) << value;
  }
}

TEST(ConfigReaderTest, OneOfListsTheWords) {
  const nlohmann::json json = {{"k", "blue"}};
  ConfigReader reader(json, "c");
  EXPECT_EQ((reader.OneOf<int>("k", 9, {{"red", 1}, {"green", 2}})), 9);
  EXPECT_EQ(MessageOf(reader), "c.k is \"blue\", legal is \"red\", \"green\"");
}

TEST(ConfigReaderTest, RequireEqual) {
  const nlohmann::json json = {{"zero", 0}, {"null", nullptr}, {"no", false}};
  ConfigReader reader(json, "c");
  reader.RequireEqual("zero", 0.0);
  reader.RequireEqual("null", nullptr);
  reader.RequireEqual("absent", nullptr);
  reader.RequireEqual("no", false);
  reader.Require("zero");
  EXPECT_TRUE(reader.status().ok()) << reader.status();
  reader.RequireEqual("absent", true);
  EXPECT_EQ(MessageOf(reader), "c.absent is missing, legal is true");
  ConfigReader second(json, "c");
  second.RequireEqual("no", true);
  EXPECT_EQ(MessageOf(second), "c.no is false, legal is true");
  ConfigReader third(json, "c");
  third.Require("null");
  EXPECT_FALSE(third.status().ok());
}

TEST(ConfigReaderTest, LongValuesAreCut) {
  EXPECT_LT(ShowValue(nlohmann::json(std::string(10000, 'x'))).size(), 200);
  EXPECT_THAT(ShowValue(nlohmann::json("\xff")), HasSubstr("ufffd"));
}

}  // namespace
}  // namespace ltx::checkpoint
