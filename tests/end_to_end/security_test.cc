#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "proto/ltx/v1/job_service.pb.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/auth/test_certificates.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = MakeFolder() + "/" + name;
  std::ofstream(path) << text;
  chmod(path.c_str(), 0600);
  return path;
}

/// An authority, and files of certificates that it signed.
struct Authority {
  TestCertificate root = MakeCertificate("test authority", nullptr);
  std::string ca = Write("ca.pem", root.certificate);

  struct Files {
    std::string certificate;
    std::string key;
  };
  Files Sign(const std::string& name) const {
    const TestCertificate signed_one = MakeCertificate(name, &root);
    return {Write(name + ".pem", signed_one.certificate), Write(name + ".key", signed_one.key)};
  }
};

/// Calls a method with an empty message, whatever its kind, and tells the status.
grpc::StatusCode CallEmpty(const std::string& address, const std::string& method,
                           const std::string& token) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&] { return queue.Next(&tag, &ok); };
  call->StartCall(nullptr);
  next();
  grpc::Slice nothing("", 0);
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
  next();
  grpc::ByteBuffer answer;
  do {
    call->Read(&answer, nullptr);
    next();
  } while (ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status.error_code();
}

TEST(SecurityTest, EveryCallNeedsAToken) {
  const std::string token = "a-token-of-the-studio";
  const auto server = ServerProcess::Start({"--token-file", Write("tokens", "studio " + token)});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  int methods = 0;
  for (const google::protobuf::FileDescriptor* file :
       {v1::GenerateVideoRequest::descriptor()->file(), v1::Job::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j, ++methods) {
        const std::string method =
            "/" + file->service(i)->full_name() + "/" + file->service(i)->method(j)->name();
        EXPECT_EQ(CallEmpty(address, method, ""), grpc::StatusCode::UNAUTHENTICATED) << method;
        EXPECT_EQ(CallEmpty(address, method, "a-token-of-nobody-here"),
                  grpc::StatusCode::UNAUTHENTICATED)
            << method;
        if (file->service(i)->method(j)->name() == "GenerateVideo") continue;
        EXPECT_NE(CallEmpty(address, method, token), grpc::StatusCode::UNAUTHENTICATED) << method;
      }
    }
  }
  EXPECT_GE(methods, 9);
  // Load balancers have no token.
  const auto health = CallHealthCheck(address, "");
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, 1);
  EXPECT_THAT((*server)->process().Err(), Not(HasSubstr(token)));
}

TEST(SecurityTest, TheClientSendsItsToken) {
  const auto server =
      ServerProcess::Start({"--token-file", Write("tokens", "studio a-token-of-the-studio")});
  ASSERT_TRUE(server.ok()) << server.status();
  const ProgramResult without = (*server)->Client("health", {});
  EXPECT_EQ(without.exit.code, 1);
  EXPECT_THAT(without.LastErrorLine(), HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(without.LastErrorLine(), HasSubstr("[TOKEN_MISSING]"));
  const std::string file = Write("token", "a-token-of-the-studio\n");
  const ProgramResult with = (*server)->Client("health", {"--token-file", file});
  EXPECT_EQ(with.exit.code, 0) << with.err;
  const ProgramResult wrong =
      (*server)->Client("health", {"--token-file", Write("token", "a-token-of-nobody")});
  EXPECT_THAT(wrong.LastErrorLine(), HasSubstr("[TOKEN_UNKNOWN]"));
}

TEST(SecurityTest, TenantsDoNotSeeEachOther) {
  const auto server = ServerProcess::Start(
      {"--token-file", Write("tokens", "a token-of-tenant-a-1\nb token-of-tenant-b-1\n")});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string a = Write("a", "token-of-tenant-a-1");
  const std::string b = Write("b", "token-of-tenant-b-1");
  const ProgramResult uploaded =
      (*server)->Client("condition", {"--prompt", "a red circle", "--token-file", a});
  ASSERT_EQ(uploaded.exit.code, 0) << uploaded.err;
  const std::string handle = uploaded.out.substr(0, uploaded.out.find(' '));
  EXPECT_EQ((*server)->Client("condition", {"--delete", handle, "--token-file", b}).exit.code, 1);
  EXPECT_EQ((*server)->Client("condition", {"--delete", handle, "--token-file", a}).exit.code, 0);
}

TEST(SecurityTest, TlsAndCertificatesOfClients) {
  const Authority authority;
  const Authority stranger;
  const Authority::Files server_files = authority.Sign("localhost");
  const auto server = ServerProcess::Start({"--tls-cert", server_files.certificate, "--tls-key",
                                            server_files.key, "--tls-client-ca", authority.ca});
  ASSERT_TRUE(server.ok()) << server.status();
  const Authority::Files mine = authority.Sign("studio");
  const Authority::Files foreign = stranger.Sign("studio");
  const auto health = [&](const std::vector<std::string>& flags) {
    return (*server)->Client("health", Join({"--timeout", "3"}, flags)).exit.code;
  };
  EXPECT_EQ(
      health({"--tls-ca", authority.ca, "--tls-cert", mine.certificate, "--tls-key", mine.key}), 0);
  // In the clear, without a certificate, with one of another authority, and to a server that the
  // client does not trust.
  EXPECT_EQ(health({}), 1);
  EXPECT_EQ(health({"--tls-ca", authority.ca}), 1);
  EXPECT_EQ(health({"--tls-ca", authority.ca, "--tls-cert", foreign.certificate, "--tls-key",
                    foreign.key}),
            1);
  EXPECT_EQ(
      health({"--tls-ca", stranger.ca, "--tls-cert", mine.certificate, "--tls-key", mine.key}), 1);
}

TEST(SecurityTest, SettingsThatDoNotFit) {
  const std::string tokens = Write("tokens", "a a-token-of-tenant-a");
  const auto refusal = [](const std::vector<std::string>& flags) {
    return RunProgram(Join({kServerProgram, "--model", kTinyModel}, flags)).LastErrorLine();
  };
  EXPECT_THAT(refusal({"--listen", "0.0.0.0:0", "--token-file", tokens}),
              HasSubstr("in the clear"));
  EXPECT_THAT(refusal({"--listen", "127.0.0.1:0", "--tls-cert", tokens}), HasSubstr("tls_key"));
  EXPECT_THAT(refusal({"--listen", "127.0.0.1:0", "--token-file", "/no/such"}),
              HasSubstr("/no/such"));
  EXPECT_THAT(refusal({"--listen", "127.0.0.1:0", "--max-message-bytes", "1"}),
              HasSubstr("max_message_bytes 1"));
}

TEST(SecurityTest, MessagesAreLimited) {
  const auto server = ServerProcess::Start({"--max-message-bytes", "65536"});
  ASSERT_TRUE(server.ok()) << server.status();
  v1::GenerateVideoRequest request = SmallRequest(1);
  request.set_prompt(std::string(100000, 'x'));
  EXPECT_EQ(CallGenerate((*server)->address(), request).error.code,
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ltx::testing
