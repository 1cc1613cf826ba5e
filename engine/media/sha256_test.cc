#include "engine/media/sha256.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace ltx::media {
namespace {

// Values of FIPS 180-4's examples.
TEST(Sha256Test, PublishedValues) {
  EXPECT_EQ(absl::BytesToHexString(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(absl::BytesToHexString(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PartsMakeTheWhole) {
  Sha256 digest;
  for (const char* part : {"a", "", "bc"}) digest.Add(part);
  EXPECT_EQ(digest.Finish(), Sha256Of("abc"));
}

}  // namespace
}  // namespace ltx::media
