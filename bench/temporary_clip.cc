#include "bench/temporary_clip.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ltx::bench {

absl::StatusOr<std::unique_ptr<TemporaryClip>> TemporaryClip::Create() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/ltx-bench-XXXXXX.mp4");
  const int file = mkstemps(path.data(), 4);
  if (file < 0) return absl::FailedPreconditionError(absl::StrCat("cannot create ", path));
  close(file);
  return std::make_unique<TemporaryClip>(std::move(path));
}

TemporaryClip::~TemporaryClip() { unlink(path_.c_str()); }

}  // namespace ltx::bench
