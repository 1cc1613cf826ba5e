#include "kernels/cpu/openmp_environment.h"

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ltx::cpu {
namespace {

/// What the probe prints when env(1) changes its environment by `changes`.
std::string Probe(const std::string& changes) {
  const std::string command =
      absl::StrCat("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT ", changes,
                   " kernels/cpu/openmp_environment_probe 'two words' '' 2>&1");
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no pipe";
  std::string output;
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.append(buffer, count);
  }
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
  return output;
}

TEST(OpenMpEnvironment, ThreadsSleepByDefault) {
  const std::string output = Probe("");
  EXPECT_TRUE(absl::StrContains(output, "OMP_WAIT_POLICY = 'PASSIVE'")) << output;
  EXPECT_TRUE(absl::StrContains(output, "GOMP_SPINCOUNT = '0'")) << output;
}

TEST(OpenMpEnvironment, RestartKeepsArguments) {
  const std::string output = Probe("");
  EXPECT_TRUE(absl::StrContains(output, "argument [two words]\nargument []\n")) << output;
}

TEST(OpenMpEnvironment, ChosenPolicyStays) {
  const std::string output = Probe("OMP_WAIT_POLICY=active");
  EXPECT_TRUE(absl::StrContains(output, "OMP_WAIT_POLICY = 'ACTIVE'")) << output;
}

TEST(OpenMpEnvironment, ChosenSpinCountStays) {
  const std::string output = Probe("GOMP_SPINCOUNT=1234");
  EXPECT_TRUE(absl::StrContains(output, "GOMP_SPINCOUNT = '1234'")) << output;
}

}  // namespace
}  // namespace ltx::cpu
