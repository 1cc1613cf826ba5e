#ifndef LTX_TESTS_SANITIZERS_PROGRAM_TEST_H_
#define LTX_TESTS_SANITIZERS_PROGRAM_TEST_H_

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ltx::testing {

/// Tests of what ThreadSanitizer thinks of a program. Each runs in a process of its own: a report
/// would fail this one.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void ExpectClean(const std::function<void()>& program) {
    EXPECT_EXIT(RunAndExit(program), ::testing::ExitedWithCode(0), "");
  }
  static void ExpectRace(const std::function<void()>& program) {
    // What ThreadSanitizer ends a program with that had a report.
    constexpr int kReported = 66;
    EXPECT_EXIT(RunAndExit(program), ::testing::ExitedWithCode(kReported), "data race");
  }

  /// All `bodies` at a time, each on a thread of its own.
  static void Together(const std::vector<std::function<void()>>& bodies) {
    std::vector<std::thread> threads;
    threads.reserve(bodies.size());
    for (const auto& body : bodies) threads.emplace_back(body);
    for (std::thread& thread : threads) thread.join();
  }

 private:
  static void RunAndExit(const std::function<void()>& program) {
    program();
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  }
};

}  // namespace ltx::testing

#endif  // LTX_TESTS_SANITIZERS_PROGRAM_TEST_H_
