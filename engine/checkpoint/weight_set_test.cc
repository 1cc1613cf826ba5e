#include "engine/checkpoint/weight_set.h"

#include "engine/checkpoint/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const SafetensorsFile> Write(const std::string& path,
                                             const std::vector<std::string>& names) {
  SafetensorsWriter writer;
  for (const std::string& name : names) writer.Floats(name, {1}, {1.0f});
  writer.WriteTo(path);
  return SafetensorsFile::Open(path).value();
}

TEST(WeightSetTest, KeepsAndStripsAPrefix) {
  const std::string folder = MakeTestFolder("weight_set");
  const auto file = Write(folder + "/a.safetensors", {"m.x", "m.y.z", "mm", "n.x"});
  WeightSet set;
  ASSERT_TRUE(set.Add(file, "m.").ok());
  EXPECT_THAT(set.Names(), ElementsAre("x", "y.z"));
  EXPECT_TRUE(set.Contains("y.z"));
  EXPECT_FALSE(set.Contains("m.x"));
  EXPECT_EQ(set.Find("mm"), nullptr);
}

TEST(WeightSetTest, JoinsFilesAndRefusesRepeats) {
  const std::string folder = MakeTestFolder("weight_set");
  const auto a = Write(folder + "/a.safetensors", {"x"});
  const auto b = Write(folder + "/b.safetensors", {"y"});
  const auto c = Write(folder + "/c.safetensors", {"y", "z"});
  WeightSet set;
  ASSERT_TRUE(set.Add(a).ok());
  ASSERT_TRUE(set.Add(b).ok());
  EXPECT_EQ(set.PathOf("y"), b->path());
  EXPECT_EQ(set.PathOf("none"), a->path());
  const absl::Status status = set.Add(c);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"y\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("b.safetensors"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("c.safetensors"));
}

}  // namespace
}  // namespace ltx::checkpoint
