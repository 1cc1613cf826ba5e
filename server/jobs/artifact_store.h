#ifndef LTX_SERVER_JOBS_ARTIFACT_STORE_H_
#define LTX_SERVER_JOBS_ARTIFACT_STORE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/jobs/media_file.h"

namespace ltx::server {

/// Clips of finished jobs inside a budget of bytes; the oldest make room. Whoever has opened one
/// can read it to its end all the same. Thread-safe.
class ArtifactStore {
 public:
  struct Options {
    /// Existing folder of this store alone.
    std::string folder;
    int64_t quota_bytes = 0;
    /// Whether files keep their names and so survive the process. Otherwise they are nameless as
    /// soon as they are finished, and are gone with the process however it ends.
    bool keep = false;
  };
  explicit ArtifactStore(Options options) : options_(std::move(options)) {}

  /// Where the clip of a job is to be written, whole or not at all.
  std::string PathFor(const std::string& job_id, absl::string_view mime_type) const;
  /// Takes the finished file at PathFor(). It stays until Unpin(), and as long after as there is
  /// room. RESOURCE_EXHAUSTED (ARTIFACT_QUOTA) if it does not fit though all others that may go are
  /// gone; the file is removed then.
  absl::StatusOr<MediaInfo> Add(const std::string& job_id, absl::string_view mime_type);
  /// The job is over: its clip may make room for others.
  void Unpin(const std::string& job_id);

  /// NOT_FOUND (ARTIFACT_GONE) if there is none, or none any more.
  absl::StatusOr<std::shared_ptr<const MediaFile>> Open(const std::string& job_id) const;
  bool Has(const std::string& job_id) const;
  void Remove(const std::string& job_id);
  int64_t bytes() const;

  /// After a start, from the oldest to the newest: takes the file that the record of a job tells
  /// of. False if it is not there, or not of that size.
  bool Restore(const std::string& job_id, const MediaInfo& info);
  /// After the last Restore(): removes the files of the folder that nobody told of, such as clips
  /// whose job did not come to its end.
  void RemoveStrangers();

 private:
  struct Clip {
    std::string job_id;
    std::string path;
    int64_t bytes = 0;
    bool pinned = false;
    /// Without a name, else null.
    std::shared_ptr<const MediaFile> file;
  };
  using Clips = std::list<Clip>;

  /// False if it cannot be done.
  bool MakeRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Clips::iterator clip) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(Clip clip) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  /// By age, the oldest first.
  Clips clips_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Clips::iterator> index_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_JOBS_ARTIFACT_STORE_H_
