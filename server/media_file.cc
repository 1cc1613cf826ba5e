#include "server/media_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

/// Large enough that hashing, not system calls, takes the time.
constexpr int64_t kHashBlockBytes = 1 << 20;

struct DigestFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<MediaFile>> MediaFile::TakeOver(const std::string& path,
                                                               std::string mime_type) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  unlink(path.c_str());
  std::unique_ptr<MediaFile> file(new MediaFile(descriptor, std::move(mime_type)));

  const std::unique_ptr<EVP_MD_CTX, DigestFree> digest(EVP_MD_CTX_new());
  EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
  while (true) {
    LTX_ASSIGN_OR_RETURN(const std::string block, file->Read(kHashBlockBytes));
    if (block.empty()) break;
    EVP_DigestUpdate(digest.get(), block.data(), block.size());
    file->total_bytes_ += static_cast<int64_t>(block.size());
  }
  unsigned char result[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(digest.get(), result, &length);
  file->sha256_.assign(reinterpret_cast<const char*>(result), length);
  lseek(descriptor, 0, SEEK_SET);
  return file;
}

MediaFile::~MediaFile() { close(descriptor_); }

absl::StatusOr<std::string> MediaFile::Read(int64_t max_bytes) {
  std::string block(max_bytes, '\0');
  ssize_t count;
  do {
    count = read(descriptor_, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return absl::InternalError(absl::StrCat("cannot read the clip: ", std::strerror(errno)));
  }
  block.resize(count);
  return block;
}

}  // namespace ltx::server
