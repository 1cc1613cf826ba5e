#ifndef LTX_BENCH_TEMPORARY_CLIP_H_
#define LTX_BENCH_TEMPORARY_CLIP_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace ltx::bench {

/// A file for clips, gone with this object.
class TemporaryClip {
 public:
  /// In $TMPDIR or /tmp.
  static absl::StatusOr<std::unique_ptr<TemporaryClip>> Create();
  explicit TemporaryClip(std::string path) : path_(std::move(path)) {}
  ~TemporaryClip();
  TemporaryClip(const TemporaryClip&) = delete;
  TemporaryClip& operator=(const TemporaryClip&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace ltx::bench

#endif  // LTX_BENCH_TEMPORARY_CLIP_H_
