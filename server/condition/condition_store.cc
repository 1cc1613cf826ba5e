#include "server/condition/condition_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/media/media_errors.h"
#include "engine/pipeline/error_details.h"
#include "google/rpc/error_details.pb.h"
#include "kernels/status_macros.h"
#include "server/reasons.h"
#include "server/rpc_details.h"

namespace ltx::server {
namespace {

/// An upload of unknown size grows by half of what it has, but by this at least.
constexpr int64_t kMinGrowthBytes = 64 * 1024;

absl::Status Full(const std::string& message, const std::string& value, const std::string& legal) {
  absl::Status status =
      pipeline::WithDetail(absl::ResourceExhaustedError(message),
                           {std::string(kReasonConditionStoreFull), "", value, legal});
  AttachQuotaFailure("conditions", absl::StrCat("need ", value, ", may have ", legal), &status);
  return status;
}

}  // namespace

ConditionStore::ConditionStore(Options options, MemoryLedger* ledger, ServerMetrics* metrics)
    : options_(std::move(options)), ledger_(ledger), metrics_(metrics) {}

ConditionStore::Upload::~Upload() { store_->End(this); }

absl::Status ConditionStore::Upload::Append(absl::string_view data) {
  const int64_t size = bytes() + static_cast<int64_t>(data.size());
  const int64_t limit = store_->options_.max_upload_bytes;
  if (size > limit) {
    return media::LimitError("the upload", "bytes", static_cast<double>(size),
                             static_cast<double>(limit));
  }
  if (size > reserved_) {
    const int64_t target =
        std::min(limit, std::max(size, reserved_ + std::max(reserved_ / 2, kMinGrowthBytes)));
    absl::MutexLock lock(&store_->mutex_);
    LTX_RETURN_IF_ERROR(store_->Reserve(this, target - reserved_));
  }
  bytes_->Append(data);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ConditionStore::Upload>> ConditionStore::Begin(
    const std::string& tenant, int64_t expected_bytes) {
  if (expected_bytes > options_.max_upload_bytes) {
    return media::LimitError("the upload", "bytes", static_cast<double>(expected_bytes),
                             static_cast<double>(options_.max_upload_bytes));
  }
  std::unique_ptr<Upload> upload;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (totals_.uploads >= options_.max_uploads) {
      const std::string most = absl::StrCat(options_.max_uploads);
      return Full(absl::StrCat(most, " uploads are under way, and no more may be"), most,
                  absl::StrCat("at most ", most, " at a time"));
    }
    ++totals_.uploads;
    upload.reset(new Upload(this, tenant, std::make_shared<CountedBytes>(ledger_)));
    if (expected_bytes > 0) status = Reserve(upload.get(), expected_bytes);
  }
  LTX_RETURN_IF_ERROR(status);
  return upload;
}

absl::Status ConditionStore::Reserve(Upload* upload, int64_t bytes) {
  SweepLocked();
  while (TenantBytes(upload->tenant_) + bytes > options_.tenant_budget_bytes) {
    if (EvictOne(upload->tenant_)) continue;
    const std::string need = absl::StrCat(upload->reserved_ + bytes);
    const std::string have = absl::StrCat(options_.tenant_budget_bytes);
    absl::Status status =
        pipeline::WithDetail(absl::ResourceExhaustedError(absl::StrCat(
                                 "the upload needs ", need, " bytes; tenant ", upload->tenant_,
                                 " may hold ", have, ", uploads under way included")),
                             {std::string(kReasonTenantQuota), "", need, have});
    AttachQuotaFailure(absl::StrCat("tenant:", upload->tenant_, "/condition_bytes"),
                       absl::StrCat("need ", need, ", may hold ", have), &status);
    return status;
  }
  while (totals_.stored_bytes + totals_.reserved_bytes + bytes > options_.budget_bytes) {
    if (EvictOne("")) continue;
    const std::string need = absl::StrCat(upload->reserved_ + bytes);
    const std::string have = absl::StrCat(options_.budget_bytes);
    return Full(
        absl::StrCat("no room for an upload of ", need, " bytes: the store holds ", have,
                     ", and other uploads take ", totals_.reserved_bytes - upload->reserved_),
        need, have);
  }
  AddTenantBytes(upload->tenant_, bytes);
  totals_.reserved_bytes += bytes;
  upload->reserved_ += bytes;
  upload->bytes_->Reserve(upload->reserved_);
  return absl::OkStatus();
}

void ConditionStore::End(Upload* upload) {
  absl::MutexLock lock(&mutex_);
  --totals_.uploads;
  totals_.reserved_bytes -= upload->reserved_;
  AddTenantBytes(upload->tenant_, -upload->reserved_);
}

int64_t ConditionStore::TenantBytes(const std::string& tenant) const {
  const auto found = tenant_bytes_.find(tenant);
  return found == tenant_bytes_.end() ? 0 : found->second;
}

void ConditionStore::AddTenantBytes(const std::string& tenant, int64_t bytes) {
  const auto found = tenant_bytes_.emplace(tenant, 0).first;
  found->second += bytes;
  if (found->second == 0) tenant_bytes_.erase(found);
}

v1::ConditionResponse ConditionStore::Put(std::unique_ptr<Upload> upload,
                                          v1::ConditionResponse facts) {
  const Key key{upload->tenant_, facts.handle()};
  absl::MutexLock lock(&mutex_);
  SweepLocked();
  const auto found = index_.find(key);
  if (found != index_.end()) {
    metrics_->CountCacheHit(kConditionCache);
    Touch(found->second);
    v1::ConditionResponse known = found->second->entry.facts;
    known.set_already_stored(true);
    return known;
  }
  metrics_->CountCacheMiss(kConditionCache);
  // What was booked becomes what is stored.
  const int64_t bytes = std::exchange(upload->reserved_, 0);
  totals_.reserved_bytes -= bytes;
  totals_.stored_bytes += bytes;
  ++totals_.entries;
  stored_.push_front({key, {std::move(facts), std::move(upload->bytes_)}, absl::Time()});
  index_[key] = stored_.begin();
  Touch(stored_.begin());
  return stored_.front().entry.facts;
}

void ConditionStore::Touch(List::iterator stored) {
  stored->expires = options_.now() + options_.ttl;
  stored->entry.facts.set_expires_at_unix_seconds(
      absl::ToDoubleSeconds(stored->expires - absl::UnixEpoch()));
  stored_.splice(stored_.begin(), stored_, stored);
}

absl::Status ConditionStore::NotFound(const std::string& handle) const {
  // As much of it as a handle can have: what does not exist may be anything.
  const std::string shown = handle.substr(0, 100);
  absl::Status status = pipeline::WithDetail(
      absl::NotFoundError(absl::StrCat("no uploaded material \"", shown,
                                       "\": it was never there, or it was deleted, expired ",
                                       absl::ToInt64Seconds(options_.ttl),
                                       " s after its last use, or made room for other uploads")),
      {std::string(kReasonConditionNotFound), "", shown, "a handle that Condition returned"});
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("ltx.v1.Condition");
  resource.set_resource_name(absl::CHexEscape(shown));
  AttachRpcDetail(resource, &status);
  return status;
}

absl::StatusOr<ConditionStore::Entry> ConditionStore::Find(const std::string& tenant,
                                                           const std::string& handle) {
  absl::MutexLock lock(&mutex_);
  SweepLocked();
  const auto found = index_.find({tenant, handle});
  if (found == index_.end()) {
    metrics_->CountCacheMiss(kConditionCache);
    return NotFound(handle);
  }
  metrics_->CountCacheHit(kConditionCache);
  Touch(found->second);
  return found->second->entry;
}

absl::Status ConditionStore::Delete(const std::string& tenant, const std::string& handle) {
  absl::MutexLock lock(&mutex_);
  SweepLocked();
  const auto found = index_.find({tenant, handle});
  if (found == index_.end()) return NotFound(handle);
  Erase(found->second);
  return absl::OkStatus();
}

void ConditionStore::Sweep() {
  absl::MutexLock lock(&mutex_);
  SweepLocked();
}

void ConditionStore::SweepLocked() {
  // Each use moves an entry to the front and its expiry to the end of time left: the list is in
  // order of expiry too.
  const absl::Time now = options_.now();
  while (!stored_.empty() && stored_.back().expires <= now) Erase(std::prev(stored_.end()));
}

void ConditionStore::Erase(List::iterator stored) {
  const int64_t bytes = stored->entry.bytes->capacity();
  totals_.stored_bytes -= bytes;
  --totals_.entries;
  AddTenantBytes(stored->key.tenant, -bytes);
  index_.erase(stored->key);
  stored_.erase(stored);
}

bool ConditionStore::EvictOne(const std::string& tenant) {
  for (auto stored = stored_.end(); stored != stored_.begin();) {
    --stored;
    if (!tenant.empty() && stored->key.tenant != tenant) continue;
    Erase(stored);
    return true;
  }
  return false;
}

ConditionStore::Snapshot ConditionStore::Read() const {
  absl::MutexLock lock(&mutex_);
  return totals_;
}

}  // namespace ltx::server
