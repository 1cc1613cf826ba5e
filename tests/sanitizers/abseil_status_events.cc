// Tells ThreadSanitizer how Abseil's statuses are shared: the distribution's Abseil counts their
// owners by an atomic number out of its sight. gRPC passes statuses from thread to thread inside,
// through queues without locks too, so that the making of one comes before all uses of its contents
// besides: who has a status has got it from who made it. Whether the status itself was handed over
// properly stays visible where this project did it: its one word is copied by inline functions.

#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tests/sanitizers/next_function.h"

namespace {

using absl::Cord;
using absl::Status;
using absl::StatusCode;
using absl::StatusToStringMode;
using absl::string_view;
using ltx::testing::NextFunction;
using Visitor = absl::FunctionRef<void(string_view, const Cord&)>;

NextFunction<void(Status*, StatusCode, string_view)> next_construct(
    "_ZN4absl7debian36StatusC1ENS0_10StatusCodeENS0_11string_viewE");
NextFunction<void(Status*, string_view, Cord)> next_set_payload(
    "_ZN4absl7debian36Status10SetPayloadENS0_11string_viewENS0_4CordE");
NextFunction<absl::optional<Cord>(const Status*, string_view)> next_get_payload(
    "_ZNK4absl7debian36Status10GetPayloadENS0_11string_viewE");
NextFunction<void(const Status*, Visitor)> next_for_each_payload(
    "_ZNK4absl7debian36Status14ForEachPayloadENS0_11FunctionRefIFvNS0_11string_viewERKNS0_4CordEEE"
    "E");
NextFunction<std::string(const Status*, StatusToStringMode)> next_to_string(
    "_ZNK4absl7debian36Status12ToStringSlowB5cxx11ENS0_18StatusToStringModeE");
NextFunction<bool(const Status&, const Status&)> next_equals(
    "_ZN4absl7debian36Status10EqualsSlowERKS1_S3_");

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

/// Calls `tell` with the contents of a status, if it has any: its word is then their address and
/// one.
void Tell(void (*tell)(void*), uintptr_t word) {
  if ((word & 1) == 0) return;
  tell(reinterpret_cast<void*>(word - 1));  // NOLINT(performance-no-int-to-ptr): Abseil's own
}

void Made(uintptr_t word) { Tell(__tsan_release, word); }
void Used(uintptr_t word) { Tell(__tsan_acquire, word); }

}  // namespace

Status::Status(StatusCode code, string_view message) {
  next_construct(this, code, message);
  Made(rep_);
}

void Status::SetPayload(string_view type_url, Cord payload) {
  next_set_payload(this, type_url, std::move(payload));
  Made(rep_);
}

optional<Cord> Status::GetPayload(string_view type_url) const {
  Used(rep_);
  return next_get_payload(this, type_url);
}

void Status::ForEachPayload(FunctionRef<void(string_view, const Cord&)> visitor) const {
  Used(rep_);
  next_for_each_payload(this, visitor);
}

std::string Status::ToStringSlow(StatusToStringMode mode) const {
  Used(rep_);
  return next_to_string(this, mode);
}

bool Status::EqualsSlow(const Status& a, const Status& b) {
  Used(a.rep_);
  Used(b.rep_);
  return next_equals(a, b);
}

// Whole, as an owner's release must come before its decrement and the last one's acquire after it.
void Status::UnrefNonInlined(uintptr_t rep) {
  status_internal::StatusRep* const contents = RepToPointer(rep);
  __tsan_release(contents);
  if (contents->ref.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  __tsan_acquire(contents);
  delete contents;
}

ABSL_NAMESPACE_END
}  // namespace absl
