#ifndef LTX_SERVER_JOBS_RECORD_STORE_H_
#define LTX_SERVER_JOBS_RECORD_STORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/jobs/job_record.pb.h"

namespace ltx::server {

/// Job records as files, ID.json each, written whole or not at all. Different jobs may be written
/// at the same time.
class RecordStore {
 public:
  /// `folder` exists and belongs to this store alone.
  explicit RecordStore(std::string folder) : folder_(std::move(folder)) {}

  /// On disk when it returns. RESOURCE_EXHAUSTED if the disk is full, PERMISSION_DENIED.
  absl::Status Save(const JobRecord& record) const;
  void Remove(const std::string& job_id) const;

  struct Contents {
    /// By sequence.
    std::vector<JobRecord> records;
    /// Files that are no records, one line each; they stay where they are.
    std::vector<std::string> warnings;
  };
  /// Everything there is; removes what a killed process left half-written.
  Contents Load() const;

 private:
  std::string PathFor(const std::string& job_id) const { return folder_ + "/" + job_id + ".json"; }
  const std::string folder_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_RECORD_STORE_H_
