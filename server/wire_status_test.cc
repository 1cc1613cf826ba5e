#include "server/wire_status.h"

#include <grpcpp/support/error_details.h>

#include <string>

#include "engine/pipeline/error_details.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(grpc::ExtractErrorDetails(status, &details).ok());
  return details;
}

TEST(ToWireTest, CarriesReasonFieldAndLegalValues) {
  const absl::Status status = pipeline::WithDetail(
      absl::InvalidArgumentError("num_frames 72 is not 8k + 1"),
      {std::string(pipeline::kReasonFrameGrid), "num_frames", "72", "65 or 73"});
  const grpc::Status wire = ToWire(status);
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(wire.error_message(), "num_frames 72 is not 8k + 1");
  const google::rpc::Status details = Details(wire);
  ASSERT_EQ(details.details_size(), 2);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "FRAME_GRID");
  EXPECT_EQ(info.domain(), "ltx-server");
  EXPECT_EQ(info.metadata().at("legal"), "65 or 73");
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(details.details(1).UnpackTo(&bad_request));
  ASSERT_EQ(bad_request.field_violations_size(), 1);
  EXPECT_EQ(bad_request.field_violations(0).field(), "num_frames");
}

TEST(ToWireTest, NamesDeviceMemoryAndWhenToComeBack) {
  const grpc::Status wire =
      ToWire(absl::ResourceExhaustedError("activations: need 5, have 3"), absl::Seconds(7));
  const google::rpc::Status details = Details(wire);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "DEVICE_OOM");
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(1).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 8);
}

TEST(ToWireTest, CutsLongMessagesBetweenCharacters) {
  std::string text(1023, 'x');
  for (int i = 0; i < 200; ++i) text += "\xC3\xA9";
  const grpc::Status wire = ToWire(absl::InvalidArgumentError(text));
  EXPECT_EQ(wire.error_message(), std::string(1023, 'x') + "...");
}

TEST(ToWireTest, OkStaysOk) { EXPECT_TRUE(ToWire(absl::OkStatus()).ok()); }

}  // namespace
}  // namespace ltx::server
