#include "server/condition/condition_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/png_writer.h"
#include "engine/pipeline/error_details.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;

/// The RPC alone, of one tenant.
class Service final : public v1::VideoService::CallbackService {
 public:
  explicit Service(ConditionService* conditions) : conditions_(conditions) {}
  grpc::ServerReadReactor<v1::ConditionRequest>* Condition(
      grpc::CallbackServerContext*, v1::ConditionResponse* response) override {
    return conditions_->Receive("me", response);
  }

 private:
  ConditionService* const conditions_;
};

std::string Png() {
  const std::string path = ::testing::TempDir() + "/p.png";
  EXPECT_TRUE(media::WritePng(path, std::vector<uint8_t>(4 * 2 * 3, 127), 4, 2).ok());
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

class ConditionServiceTest : public ::testing::Test {
 protected:
  void Start(absl::Duration upload_limit = absl::Minutes(1),
             absl::Duration ttl = absl::Minutes(10)) {
    ConditionStore::Options store;
    store.ttl = ttl;
    store.max_upload_bytes = 1 << 20;
    store.max_uploads = 2;
    store_ = std::make_unique<ConditionStore>(store, &ledger_, &metrics_);
    ConditionService::Options options;
    options.upload_limit = upload_limit;
    options.inspect.check_prompt = [](absl::string_view) { return absl::OkStatus(); };
    conditions_ = std::make_unique<ConditionService>(options, store_.get());
    service_ = std::make_unique<Service>(conditions_.get());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::VideoService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  ~ConditionServiceTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    conditions_.reset();
    // The store may go now: no upload that was cut off is still about to give its room back.
    EXPECT_EQ(store_ == nullptr ? 0 : store_->Read().uploads, 0);
    store_.reset();
    EXPECT_EQ(ledger_.Read().total.live_bytes, 0);
  }

  /// Uploads in chunks of seven bytes.
  grpc::Status Upload(const v1::ConditionHeader& header, const std::string& content,
                      v1::ConditionResponse* response) {
    grpc::ClientContext context;
    const auto writer = stub_->Condition(&context, response);
    v1::ConditionRequest message;
    *message.mutable_header() = header;
    writer->Write(message);
    for (size_t at = 0; at < content.size(); at += 7) {
      message.set_data(content.substr(at, 7));
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  static std::string Reason(const grpc::Status& status) {
    google::rpc::Status details;
    google::rpc::ErrorInfo info;
    if (details.ParseFromString(status.error_details()) && details.details_size() > 0) {
      details.details(0).UnpackTo(&info);
    }
    return info.reason();
  }

  MemoryLedger ledger_;
  ServerMetrics metrics_;
  std::unique_ptr<ConditionStore> store_;
  std::unique_ptr<ConditionService> conditions_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::VideoService::Stub> stub_;
};

TEST_F(ConditionServiceTest, UploadsAndFindsAgain) {
  Start();
  v1::ConditionResponse response;
  const grpc::Status status = Upload({}, Png(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.kind(), v1::CONDITION_KIND_IMAGE);
  EXPECT_EQ(response.width(), 4);
  EXPECT_GT(response.expires_at_unix_seconds(), absl::ToUnixSeconds(absl::Now()));
  EXPECT_EQ(store_->Find("me", response.handle())->bytes->size(), Png().size());
  v1::ConditionResponse again;
  EXPECT_TRUE(Upload({}, Png(), &again).ok());
  EXPECT_TRUE(again.already_stored());
  EXPECT_EQ(again.handle(), response.handle());
}

TEST_F(ConditionServiceTest, RefusalsCarryReasons) {
  Start();
  v1::ConditionResponse response;
  EXPECT_EQ(Reason(Upload({}, "", &response)), "MEDIA_FORMAT");
  EXPECT_EQ(Reason(Upload({}, "no such format", &response)), "MEDIA_FORMAT");
  v1::ConditionHeader header;
  header.set_total_bytes(int64_t{1} << 40);
  const grpc::Status huge = Upload(header, Png(), &response);
  EXPECT_EQ(huge.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(huge), "MEDIA_LIMIT");
  header.set_total_bytes(-1);
  EXPECT_EQ(Reason(Upload(header, Png(), &response)), "CONDITION_UPLOAD");
  header.set_total_bytes(0);
  header.set_name(std::string(257, 'n'));
  EXPECT_THAT(Upload(header, Png(), &response).error_message(), HasSubstr("at most 256 bytes"));
  EXPECT_EQ(store_->Read().uploads, 0);
}

TEST_F(ConditionServiceTest, AnEndlessUploadIsCutAtTheLimit) {
  Start();
  grpc::ClientContext context;
  v1::ConditionResponse response;
  const auto writer = stub_->Condition(&context, &response);
  v1::ConditionRequest message;
  message.mutable_header();
  writer->Write(message);
  message.set_data(std::string(100000, '\xFF'));
  int written = 0;
  while (written < 1000 && writer->Write(message)) ++written;
  const grpc::Status status = writer->Finish();
  EXPECT_LT(written, 1000);
  EXPECT_EQ(Reason(status), "MEDIA_LIMIT");
  EXPECT_THAT(status.error_message(), HasSubstr("at most 1048576 bytes"));
  EXPECT_LE(ledger_.Read().total.peak_bytes, 1 << 20);
}

TEST_F(ConditionServiceTest, DataBeforeTheHeader) {
  Start();
  grpc::ClientContext context;
  v1::ConditionResponse response;
  const auto writer = stub_->Condition(&context, &response);
  v1::ConditionRequest message;
  message.set_data("x");
  writer->Write(message);
  EXPECT_EQ(Reason(writer->Finish()), "CONDITION_UPLOAD");
  grpc::ClientContext second;
  const auto nothing = stub_->Condition(&second, &response);
  nothing->WritesDone();
  EXPECT_EQ(Reason(nothing->Finish()), "CONDITION_UPLOAD");
}

TEST_F(ConditionServiceTest, ASlowClientIsCutOff) {
  Start(absl::Milliseconds(300));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::ConditionResponse response;
  const auto writer = stub_->Condition(&context, &response);
  v1::ConditionRequest message;
  message.mutable_header();
  writer->Write(message);
  // No more comes, and no end.
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Reason(status), "CONDITION_UPLOAD");
  EXPECT_THAT(status.error_message(), HasSubstr("300ms"));
}

TEST_F(ConditionServiceTest, WhatExpiredGoesWithoutBeingAskedFor) {
  Start(absl::Minutes(1), /*ttl=*/absl::Milliseconds(50));
  v1::ConditionResponse response;
  ASSERT_TRUE(Upload({}, Png(), &response).ok());
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (store_->Read().entries > 0 && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(store_->Read().entries, 0);
  EXPECT_EQ(ledger_.Read().total.live_bytes, 0);
}

TEST_F(ConditionServiceTest, TooManyAtOnce) {
  Start();
  const auto begin = [this](grpc::ClientContext* context, v1::ConditionResponse* response) {
    auto writer = stub_->Condition(context, response);
    v1::ConditionRequest message;
    message.mutable_header();
    writer->Write(message);
    return writer;
  };
  grpc::ClientContext contexts[3];
  v1::ConditionResponse responses[3];
  const auto first = begin(&contexts[0], &responses[0]);
  const auto second = begin(&contexts[1], &responses[1]);
  while (store_->Read().uploads < 2) absl::SleepFor(absl::Milliseconds(1));
  const grpc::Status third = begin(&contexts[2], &responses[2])->Finish();
  EXPECT_EQ(third.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(third), "CONDITION_STORE_FULL");
  contexts[0].TryCancel();
  EXPECT_EQ(first->Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (store_->Read().uploads > 1) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(Upload({}, Png(), &responses[0]).ok());
  contexts[1].TryCancel();
  second->Finish();
}

TEST_F(ConditionServiceTest, ResolvesHandlesOfARequest) {
  Start();
  v1::ConditionHeader header;
  header.set_kind(v1::CONDITION_KIND_PROMPT);
  v1::ConditionResponse prompt;
  v1::ConditionResponse image;
  ASSERT_TRUE(Upload(header, "a red circle", &prompt).ok());
  ASSERT_TRUE(Upload({}, Png(), &image).ok());
  const auto field = [this](const v1::GenerateVideoRequest& request) {
    const auto detail = pipeline::GetErrorDetail(conditions_->Resolve("me", request).status());
    return detail.has_value() ? detail->field : "none";
  };

  v1::GenerateVideoRequest request;
  request.set_prompt_handle(prompt.handle());
  const auto resolved = conditions_->Resolve("me", request);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->prompt(), "a red circle");
  EXPECT_EQ(resolved->prompt_handle(), "");
  EXPECT_EQ(conditions_->Resolve("you", request).status().code(), absl::StatusCode::kNotFound);
  request.set_prompt("another");
  EXPECT_EQ(field(request), "prompt_handle");
  request.clear_prompt();
  request.set_prompt_handle(image.handle());
  EXPECT_EQ(field(request), "prompt_handle");
  request.clear_prompt_handle();

  v1::ConditionRef* reference = request.add_conditions();
  reference->set_handle(image.handle());
  EXPECT_EQ(field(request), "conditions[0].role");
  reference->set_role(v1::CONDITION_ROLE_FRAME);
  EXPECT_EQ(field(request), "none");
  reference->set_strength(1.5);
  EXPECT_EQ(field(request), "conditions[0].strength");
  reference->set_strength(1);
  reference->set_handle(prompt.handle());
  EXPECT_EQ(field(request), "conditions[0].handle");
  reference->set_handle("image:0");
  EXPECT_EQ(conditions_->Resolve("me", request).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ltx::server
