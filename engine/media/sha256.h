#ifndef LTX_ENGINE_MEDIA_SHA256_H_
#define LTX_ENGINE_MEDIA_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace ltx::media {

/// A SHA-256 digest over bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(absl::string_view bytes);
  /// The 32 bytes of the digest; the object is used up.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of `bytes`.
std::string Sha256Of(absl::string_view bytes);

}  // namespace ltx::media

#endif  // LTX_ENGINE_MEDIA_SHA256_H_
