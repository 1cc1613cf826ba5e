#include "server/condition/condition_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "engine/pipeline/error_details.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;

std::string Reason(const absl::Status& status) {
  const auto detail = pipeline::GetErrorDetail(status);
  return detail.has_value() ? detail->reason : "";
}

class ConditionStoreTest : public ::testing::Test {
 protected:
  ConditionStoreTest() {
    options_.budget_bytes = 1000;
    options_.tenant_budget_bytes = 600;
    options_.max_upload_bytes = 500;
    options_.max_uploads = 3;
    options_.ttl = absl::Seconds(10);
    options_.now = [this] { return now_; };
  }
  ConditionStore& store() {
    if (store_ == nullptr) store_ = std::make_unique<ConditionStore>(options_, &ledger_, &metrics_);
    return *store_;
  }
  int64_t Live() const { return ledger_.Read().total.live_bytes; }
  absl::Status Add(const std::string& tenant, const std::string& handle, int64_t bytes) {
    auto upload = store().Begin(tenant, bytes);
    if (!upload.ok()) return upload.status();
    EXPECT_TRUE((*upload)->Append(std::string(bytes, 'x')).ok());
    v1::ConditionResponse facts;
    facts.set_handle(handle);
    store().Put(*std::move(upload), facts);
    return absl::OkStatus();
  }
  bool Has(const std::string& tenant, const std::string& handle) {
    return store().Find(tenant, handle).ok();
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  ConditionStore::Options options_;
  MemoryLedger ledger_;
  ServerMetrics metrics_;
  std::unique_ptr<ConditionStore> store_;
};

TEST_F(ConditionStoreTest, KeepsWhatWasUploaded) {
  auto upload = store().Begin("a", 5);
  ASSERT_TRUE(upload.ok());
  EXPECT_TRUE((*upload)->Append("he").ok());
  EXPECT_TRUE((*upload)->Append("llo").ok());
  v1::ConditionResponse facts;
  facts.set_handle("prompt:1");
  const v1::ConditionResponse kept = store().Put(*std::move(upload), facts);
  EXPECT_FALSE(kept.already_stored());
  EXPECT_EQ(kept.expires_at_unix_seconds(), 1010);
  const auto found = store().Find("a", "prompt:1");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bytes->view(), "hello");
  EXPECT_EQ(Live(), 5);
  const ConditionStore::Snapshot snapshot = store().Read();
  EXPECT_EQ(snapshot.entries, 1);
  EXPECT_EQ(snapshot.stored_bytes, 5);
  EXPECT_EQ(snapshot.reserved_bytes, 0);
  EXPECT_EQ(snapshot.uploads, 0);
}

TEST_F(ConditionStoreTest, TheSameContentIsKeptOnce) {
  EXPECT_TRUE(Add("a", "image:1", 100).ok());
  now_ += absl::Seconds(5);
  auto upload = store().Begin("a", 100);
  EXPECT_TRUE((*upload)->Append(std::string(100, 'x')).ok());
  v1::ConditionResponse facts;
  facts.set_handle("image:1");
  const v1::ConditionResponse kept = store().Put(*std::move(upload), facts);
  EXPECT_TRUE(kept.already_stored());
  EXPECT_EQ(kept.expires_at_unix_seconds(), 1015);
  EXPECT_EQ(store().Read().stored_bytes, 100);
  EXPECT_EQ(Live(), 100);
}

TEST_F(ConditionStoreTest, TenantsDoNotSeeEachOther) {
  EXPECT_TRUE(Add("a", "image:1", 100).ok());
  const absl::Status status = store().Find("b", "image:1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Reason(status), "CONDITION_NOT_FOUND");
  EXPECT_EQ(store().Delete("b", "image:1").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Has("a", "image:1"));
}

TEST_F(ConditionStoreTest, AUseStartsTheTimeAnew) {
  EXPECT_TRUE(Add("a", "image:1", 10).ok());
  EXPECT_TRUE(Add("a", "image:2", 10).ok());
  now_ += absl::Seconds(9);
  EXPECT_TRUE(Has("a", "image:1"));
  now_ += absl::Seconds(2);
  EXPECT_TRUE(Has("a", "image:1"));
  EXPECT_FALSE(Has("a", "image:2"));
  now_ += absl::Seconds(11);
  store().Sweep();
  EXPECT_EQ(store().Read().entries, 0);
  EXPECT_EQ(Live(), 0);
}

TEST_F(ConditionStoreTest, TheLeastRecentlyUsedMakesRoom) {
  EXPECT_TRUE(Add("a", "image:1", 400).ok());
  EXPECT_TRUE(Add("b", "image:2", 400).ok());
  EXPECT_TRUE(Has("a", "image:1"));
  EXPECT_TRUE(Add("c", "image:3", 300).ok());
  EXPECT_TRUE(Has("a", "image:1"));
  EXPECT_FALSE(Has("b", "image:2"));
  EXPECT_EQ(Live(), 700);
}

TEST_F(ConditionStoreTest, ATenantEvictsItsOwn) {
  EXPECT_TRUE(Add("b", "image:0", 100).ok());
  EXPECT_TRUE(Add("a", "image:1", 400).ok());
  EXPECT_TRUE(Add("a", "image:2", 300).ok());
  EXPECT_TRUE(Has("b", "image:0"));
  EXPECT_FALSE(Has("a", "image:1"));
}

TEST_F(ConditionStoreTest, WhoHoldsBytesKeepsThem) {
  EXPECT_TRUE(Add("a", "image:1", 100).ok());
  {
    const auto held = store().Find("a", "image:1");
    EXPECT_TRUE(store().Delete("a", "image:1").ok());
    EXPECT_FALSE(Has("a", "image:1"));
    EXPECT_EQ(held->bytes->size(), 100);
    EXPECT_EQ(Live(), 100);
  }
  EXPECT_EQ(Live(), 0);
}

TEST_F(ConditionStoreTest, LimitsOfOneUpload) {
  const absl::Status announced = store().Begin("a", 501).status();
  EXPECT_EQ(announced.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reason(announced), "MEDIA_LIMIT");
  EXPECT_THAT(std::string(announced.message()), HasSubstr("501 bytes; legal are at most 500"));
  auto upload = store().Begin("a", 0);
  ASSERT_TRUE(upload.ok());
  EXPECT_TRUE((*upload)->Append(std::string(500, 'x')).ok());
  EXPECT_EQ(Reason((*upload)->Append("x")), "MEDIA_LIMIT");
  EXPECT_EQ(Live(), 500);
  *upload = nullptr;
  EXPECT_EQ(Live(), 0);
  EXPECT_EQ(store().Read().reserved_bytes, 0);
}

TEST_F(ConditionStoreTest, UploadsUnderWayCountAndAreNotEvicted) {
  auto first = store().Begin("a", 500);
  auto second = store().Begin("b", 400);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(store().Read().reserved_bytes, 900);
  const absl::Status quota = store().Begin("a", 200).status();
  EXPECT_EQ(quota.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Reason(quota), "TENANT_QUOTA");
  EXPECT_THAT(std::string(quota.message()), HasSubstr("tenant a may hold 600"));
  const absl::Status room = store().Begin("c", 200).status();
  EXPECT_EQ(room.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Reason(room), "CONDITION_STORE_FULL");
  *first = nullptr;
  EXPECT_TRUE(Add("c", "image:1", 200).ok());
  EXPECT_EQ(Live(), 600);
}

TEST_F(ConditionStoreTest, OnlySoManyAtOnce) {
  auto first = store().Begin("a", 0);
  auto second = store().Begin("b", 0);
  auto third = store().Begin("c", 0);
  const absl::Status fourth = store().Begin("d", 0).status();
  EXPECT_EQ(Reason(fourth), "CONDITION_STORE_FULL");
  EXPECT_THAT(std::string(fourth.message()), HasSubstr("3 uploads"));
  *third = nullptr;
  EXPECT_TRUE(store().Begin("d", 0).ok());
}

}  // namespace
}  // namespace ltx::server
