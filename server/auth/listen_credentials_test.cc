#include "server/auth/listen_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "server/auth/test_certificates.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(ListenCredentialsTest, FilesMustFitTogether) {
  const testing::TestCertificate a = testing::MakeCertificate("a", nullptr);
  const testing::TestCertificate b = testing::MakeCertificate("b", nullptr);
  const std::string certificate = Write("a.pem", a.certificate);
  const std::string key = Write("a.key", a.key);
  EXPECT_TRUE(ListenCredentials({}).ok());
  EXPECT_TRUE(ListenCredentials({certificate, key, ""}).ok());
  EXPECT_TRUE(ListenCredentials({certificate, key, certificate}).ok());

  const auto message = [](const TlsFiles& files) {
    return std::string(ListenCredentials(files).status().message());
  };
  EXPECT_THAT(message({certificate, "", ""}), HasSubstr("tls_key"));
  EXPECT_THAT(message({"", "", certificate}), HasSubstr("tls_client_ca needs"));
  EXPECT_THAT(message({certificate, Write("b.key", b.key), ""}), HasSubstr("does not belong"));
  EXPECT_THAT(message({"/no/such.pem", key, ""}), HasSubstr("/no/such.pem"));
  EXPECT_THAT(message({key, key, ""}), HasSubstr("no certificate"));
  EXPECT_THAT(message({certificate, certificate, ""}), HasSubstr("no private key"));
  EXPECT_THAT(message({certificate, key, key}), HasSubstr("tls_client_ca"));
}

TEST(ListenCredentialsTest, Loopback) {
  for (const char* inside : {"127.0.0.1:1", "127.9.9.9:0", "localhost:50051", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(inside)) << inside;
  }
  for (const char* outside :
       {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "128.0.0.1:1"}) {
    EXPECT_FALSE(IsLoopback(outside)) << outside;
  }
}

}  // namespace
}  // namespace ltx::server
