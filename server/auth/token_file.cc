#include "server/auth/token_file.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

constexpr absl::Duration kLookPeriod = absl::Seconds(1);

}  // namespace

absl::StatusOr<TokenFile::Stamp> TokenFile::ReadStamp() const {
  struct stat info;
  if (stat(path_.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("token_file: cannot read ", path_));
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    spdlog::warn("token_file {}: others than its owner may use it; chmod 600 is safer", path_);
  }
  return Stamp{info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size, info.st_ino};
}

absl::StatusOr<std::shared_ptr<const TokenTable>> TokenFile::Load() const {
  std::ifstream file(path_);
  std::stringstream content;
  content << file.rdbuf();
  if (!file.is_open() || file.bad()) {
    return absl::NotFoundError(absl::StrCat("token_file: cannot read ", path_));
  }
  absl::StatusOr<TokenTable> table = TokenTable::Parse(content.str());
  if (!table.ok()) {
    return absl::Status(table.status().code(),
                        absl::StrCat("token_file ", path_, ": ", table.status().message()));
  }
  return std::make_shared<const TokenTable>(*std::move(table));
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           std::function<absl::Time()> now) {
  std::unique_ptr<TokenFile> file(new TokenFile(path, std::move(now)));
  absl::MutexLock lock(&file->mutex_);
  LTX_ASSIGN_OR_RETURN(file->stamp_, file->ReadStamp());
  LTX_ASSIGN_OR_RETURN(file->table_, file->Load());
  file->looked_ = file->now_();
  return file;
}

std::shared_ptr<const TokenTable> TokenFile::Read() {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = now_();
  if (now - looked_ < kLookPeriod) return table_;
  looked_ = now;
  struct stat info;
  // A file that is being replaced may be away for a moment: the tokens stay.
  if (stat(path_.c_str(), &info) != 0) return table_;
  const Stamp stamp{info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size, info.st_ino};
  if (stamp == stamp_) return table_;
  stamp_ = stamp;
  absl::StatusOr<std::shared_ptr<const TokenTable>> table = Load();
  if (table.ok()) {
    table_ = *std::move(table);
    spdlog::info("token_file {}: read anew, {} tokens", path_, table_->size());
  } else {
    spdlog::error("{}; the tokens stay as they were", table.status().ToString());
  }
  return table_;
}

}  // namespace ltx::server
