#ifndef LTX_SERVER_CONDITION_CONDITION_STORE_H_
#define LTX_SERVER_CONDITION_CONDITION_STORE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/memory_ledger.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "server/condition/counted_bytes.h"
#include "server/metrics/server_metrics.h"

namespace ltx::server {

/// Uploaded material: the bytes as they came, which were decoded once and so are known to be good,
/// under a handle made of kind and content digest. Kept for a time after the last use, within a
/// budget of bytes; the least recently used go first. Who holds what Find() returned keeps the
/// bytes alive beyond that.
///
/// A handle is seen by its tenant alone, also where two tenants uploaded the same bytes.
/// Thread-safe.
class ConditionStore {
 public:
  struct Options {
    /// Of everything stored and under way.
    int64_t budget_bytes = int64_t{1} << 30;
    /// Of one tenant.
    int64_t tenant_budget_bytes = int64_t{1} << 30;
    /// Of one upload.
    int64_t max_upload_bytes = int64_t{256} << 20;
    /// Uploads under way at a time.
    int max_uploads = 8;
    /// After the last use.
    absl::Duration ttl = absl::Hours(1);
    /// For tests.
    std::function<absl::Time()> now = absl::Now;
  };

  struct Entry {
    /// Handle, kind and facts, with the time at which it expires.
    v1::ConditionResponse facts;
    std::shared_ptr<const CountedBytes> bytes;
  };

  /// Room for one upload while it comes in; given back when destroyed.
  class Upload {
   public:
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

    const std::string& tenant() const { return tenant_; }
    int64_t bytes() const { return bytes_->size(); }
    absl::Span<const uint8_t> span() const { return bytes_->span(); }

    /// Adds to what came so far. INVALID_ARGUMENT (MEDIA_LIMIT) above max_upload_bytes,
    /// RESOURCE_EXHAUSTED (TENANT_QUOTA or CONDITION_STORE_FULL) where there is no room.
    absl::Status Append(absl::string_view data);

   private:
    friend class ConditionStore;
    Upload(ConditionStore* store, std::string tenant, std::shared_ptr<CountedBytes> bytes)
        : store_(store), tenant_(std::move(tenant)), bytes_(std::move(bytes)) {}

    ConditionStore* const store_;
    const std::string tenant_;
    std::shared_ptr<CountedBytes> bytes_;
    /// Booked in the store for this upload.
    int64_t reserved_ = 0;
  };

  /// `ledger` counts the bytes under kCache; it is that of the host's memory. Both must outlive the
  /// store and whatever Find() returned.
  ConditionStore(Options options, MemoryLedger* ledger, ServerMetrics* metrics);

  /// Room for an upload that announces `expected_bytes` (0: unknown). RESOURCE_EXHAUSTED
  /// (CONDITION_STORE_FULL) if max_uploads are under way; otherwise as Append().
  absl::StatusOr<std::unique_ptr<Upload>> Begin(const std::string& tenant, int64_t expected_bytes);

  /// Keeps a finished upload of `facts.kind()` under `facts.handle()`, which it returns with the
  /// time of expiry. If the same content is there already, its time starts anew.
  v1::ConditionResponse Put(std::unique_ptr<Upload> upload, v1::ConditionResponse facts);

  /// NOT_FOUND (CONDITION_NOT_FOUND) for what is not there. Counts as a use.
  absl::StatusOr<Entry> Find(const std::string& tenant, const std::string& handle);

  /// NOT_FOUND as Find().
  absl::Status Delete(const std::string& tenant, const std::string& handle);

  /// Drops what has expired.
  void Sweep();

  struct Snapshot {
    int64_t entries = 0;
    int64_t stored_bytes = 0;
    int64_t reserved_bytes = 0;
    int uploads = 0;
  };
  Snapshot Read() const;
  const Options& options() const { return options_; }

 private:
  struct Key {
    std::string tenant;
    std::string handle;
    friend bool operator<(const Key& a, const Key& b) {
      return a.tenant != b.tenant ? a.tenant < b.tenant : a.handle < b.handle;
    }
  };
  struct Stored {
    Key key;
    Entry entry;
    absl::Time expires;
  };
  using List = std::list<Stored>;

  void End(Upload* upload);
  void AddTenantBytes(const std::string& tenant, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t TenantBytes(const std::string& tenant) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// Books `bytes` more for an upload, evicting what has to go.
  absl::Status Reserve(Upload* upload, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SweepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(List::iterator stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Touch(List::iterator stored) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The least recently used of `tenant` (of anybody, if empty) goes; false if there is none.
  bool EvictOne(const std::string& tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NotFound(const std::string& handle) const;

  const Options options_;
  MemoryLedger* const ledger_;
  ServerMetrics* const metrics_;
  mutable absl::Mutex mutex_;
  /// Most recently used first.
  List stored_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, List::iterator> index_ ABSL_GUARDED_BY(mutex_);
  /// Stored and booked bytes, of each tenant that has any.
  std::map<std::string, int64_t> tenant_bytes_ ABSL_GUARDED_BY(mutex_);
  Snapshot totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::server

#endif  // LTX_SERVER_CONDITION_CONDITION_STORE_H_
