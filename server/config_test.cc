#include "server/config.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

absl::StatusOr<CommandLine> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ltx_server");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

std::string WriteFile(const std::string& content) {
  std::string path = ::testing::TempDir() + "/config.json";
  std::ofstream(path) << content;
  return path;
}

TEST(ParseCommandLineTest, DefaultsAreSafe) {
  const auto parsed = Parse({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.listen, "127.0.0.1:50051");
  EXPECT_TRUE(parsed->config.output_roots.empty());
  EXPECT_TRUE(parsed->print_and_exit.empty());
}

TEST(ParseCommandLineTest, FlagsWinOverTheFile) {
  const std::string path = WriteFile(
      R"({"listen": "0.0.0.0:1", "threads": 3, "output_roots": ["/a", "/b"], "reflection": false})");
  const auto parsed = Parse({"--config", path.c_str(), "--threads", "2"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.listen, "0.0.0.0:1");
  EXPECT_EQ(parsed->config.threads, 2);
  EXPECT_FALSE(parsed->config.reflection);
  EXPECT_THAT(parsed->config.output_roots, ElementsAre("/a", "/b"));
  const auto replaced = Parse({"--config", path.c_str(), "--output-root", "/c"});
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_THAT(replaced->config.output_roots, ElementsAre("/c"));
}

TEST(ParseCommandLineTest, TenantWeights) {
  const std::string path = WriteFile(R"({"tenant_weights": {"a": 2, "b": 0.5}})");
  const auto from_file = Parse({"--config", path.c_str()});
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_THAT(from_file->config.tenant_weights, ElementsAre(Pair("a", 2.0), Pair("b", 0.5)));
  const auto replaced =
      Parse({"--config", path.c_str(), "--tenant-weight", "c=3", "--tenant-weight", "d=1.5"});
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_THAT(replaced->config.tenant_weights, ElementsAre(Pair("c", 3.0), Pair("d", 1.5)));
  for (const char* bad : {"a", "a=", "a=x", "=2", "a=0", "a=-1", "a=nan"}) {
    EXPECT_FALSE(Parse({"--tenant-weight", bad}).ok()) << bad;
  }
}

TEST(ParseCommandLineTest, HelpNamesEveryFlag) {
  const auto parsed = Parse({"--help"});
  ASSERT_TRUE(parsed.ok());
  for (const char* flag : {"--listen",
                           "--model",
                           "--device",
                           "--config",
                           "--threads",
                           "--compute-dtype",
                           "--queue-capacity",
                           "--queue-timeout-seconds",
                           "--batch-ageing-seconds",
                           "--tenant-weight",
                           "--state-dir",
                           "--artifact-quota-mib",
                           "--job-ttl-seconds",
                           "--job-history",
                           "--output-root",
                           "--work-dir",
                           "--drain-seconds",
                           "--reflection",
                           "--log-level",
                           "--log-format"}) {
    EXPECT_THAT(parsed->print_and_exit, HasSubstr(flag));
  }
  EXPECT_THAT(Parse({"--version"})->print_and_exit, HasSubstr("ltx_server "));
}

TEST(ParseCommandLineTest, RefusesByName) {
  EXPECT_THAT(std::string(Parse({"--no-such"}).status().message()), HasSubstr("--no-such"));
  EXPECT_THAT(std::string(Parse({"--listen", "nowhere"}).status().message()),
              HasSubstr("\"nowhere\" is not HOST:PORT"));
  for (const char* seconds : {"601", "-2", "-0.5"}) {
    EXPECT_THAT(std::string(Parse({"--calibration-seconds", seconds}).status().message()),
                HasSubstr("is neither -1 nor in 0..600"))
        << seconds;
  }
  EXPECT_TRUE(Parse({"--calibration-seconds", "-1"}).ok());
  for (const char* listen : {":1", "host:", "host:65536", "host:-1", "host:1x", "99999"}) {
    EXPECT_THAT(std::string(Parse({"--listen", listen}).status().message()),
                HasSubstr("HOST:PORT with a port in 0..65535"))
        << listen;
  }
  EXPECT_TRUE(Parse({"--listen", "[::1]:65535"}).ok());
  EXPECT_THAT(std::string(Parse({"--queue-capacity", "0"}).status().message()),
              HasSubstr("queue_capacity 0 is not in 1..100000"));
  EXPECT_THAT(std::string(Parse({"--threads", "-1"}).status().message()), HasSubstr("threads -1"));
  EXPECT_THAT(std::string(Parse({"--compute-dtype", "f8"}).status().message()),
              HasSubstr("\"f8\" is not one of auto, bf16, f32"));
  EXPECT_THAT(std::string(Parse({"--drain-seconds", "nan"}).status().message()),
              HasSubstr("drain_seconds"));
  EXPECT_THAT(std::string(Parse({"--queue-timeout-seconds", "-1"}).status().message()),
              HasSubstr("queue_timeout_seconds -1"));
  EXPECT_THAT(std::string(Parse({"--batch-ageing-seconds", "-1"}).status().message()),
              HasSubstr("batch_ageing_seconds -1"));
  EXPECT_THAT(std::string(Parse({"--job-ttl-seconds", "inf"}).status().message()),
              HasSubstr("job_ttl_seconds"));
  EXPECT_THAT(std::string(Parse({"--job-history", "0"}).status().message()),
              HasSubstr("job_history 0"));
  EXPECT_THAT(std::string(Parse({"--artifact-quota-mib", "0"}).status().message()),
              HasSubstr("artifact_quota_mib 0"));
  EXPECT_EQ(Parse({"--config", "/no/such.json"}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ApplyConfigJsonTest, RefusesUnknownKeysAndWrongTypes) {
  ServerConfig config;
  const auto message = [&config](const char* text) {
    return std::string(ApplyConfigJson(text, &config).message());
  };
  EXPECT_THAT(message(R"({"lisen": "x:1"})"), HasSubstr("unknown configuration key \"lisen\""));
  EXPECT_THAT(message(R"({"lisen": "x:1"})"), HasSubstr("queue_capacity"));
  EXPECT_THAT(message(R"({"threads": "two"})"),
              HasSubstr("\"threads\": \"two\" is not an integer"));
  EXPECT_THAT(message(R"({"threads": 2.5})"), HasSubstr("not an integer"));
  EXPECT_THAT(message(R"({"threads": 99999999999})"), HasSubstr("not an integer"));
  EXPECT_THAT(message(R"({"reflection": 1})"), HasSubstr("true or false"));
  EXPECT_THAT(message(R"({"output_roots": "x"})"), HasSubstr("list of strings"));
  EXPECT_THAT(message(R"({"tenant_weights": {"a": "x"}})"), HasSubstr("object of numbers"));
  EXPECT_THAT(message("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("{"), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace ltx::server
