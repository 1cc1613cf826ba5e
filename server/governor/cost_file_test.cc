#include "server/governor/cost_file.h"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

TEST(CostFileTest, KeepsWhatWasSaved) {
  const CostFile file(::testing::TempDir(), "model a");
  std::remove(file.path().c_str());
  EXPECT_EQ(file.Load().status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(file.Save("{1}").ok());
  ASSERT_TRUE(file.Save("{2}\n").ok());
  EXPECT_EQ(CostFile(::testing::TempDir(), "model a").Load().value(), "{2}\n");
}

TEST(CostFileTest, EachIdentityHasItsOwn) {
  const CostFile a(::testing::TempDir(), "model a");
  const CostFile b(::testing::TempDir(), "model b");
  EXPECT_NE(a.path(), b.path());
  ASSERT_TRUE(a.Save("{}").ok());
  // Somebody renamed it.
  std::ifstream from(a.path(), std::ios::binary);
  std::ofstream(b.path(), std::ios::binary) << from.rdbuf();
  EXPECT_EQ(b.Load().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CostFileTest, WhatIsNoSuchFileIsRefused) {
  const CostFile file(::testing::TempDir(), "model c");
  std::ofstream(file.path()) << "";
  EXPECT_EQ(file.Load().status().code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(file.path()) << std::string(2 << 20, 'x');
  EXPECT_EQ(file.Load().status().code(), absl::StatusCode::kInvalidArgument);
  std::remove(file.path().c_str());
  mkdir(file.path().c_str(), 0700);
  EXPECT_EQ(file.Load().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(file.Save("{}").ok());
  EXPECT_FALSE(CostFile("/nowhere", "model c").Save("{}").ok());
}

}  // namespace
}  // namespace ltx::server
