#include "engine/pipeline/error_details.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace ltx::pipeline {
namespace {

void SetPart(absl::string_view url, const std::string& text, absl::Status* status) {
  if (!text.empty()) status->SetPayload(url, absl::Cord(text));
}

std::string GetPart(absl::string_view url, const absl::Status& status) {
  const auto payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status WithDetail(absl::Status status, const ErrorDetail& detail) {
  SetPart(kErrorReasonUrl, detail.reason, &status);
  SetPart(kErrorFieldUrl, detail.field, &status);
  SetPart(kErrorValueUrl, detail.value, &status);
  SetPart(kErrorLegalUrl, detail.legal, &status);
  return status;
}

absl::Status UnknownNameError(absl::string_view field, absl::string_view name,
                              absl::string_view legal) {
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat("unknown ", field, " '", name, "'; known: ", legal)),
      {std::string(kReasonUnknownValue), std::string(field), std::string(name),
       std::string(legal)});
}

std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status) {
  if (!status.GetPayload(kErrorReasonUrl).has_value()) return std::nullopt;
  return ErrorDetail{GetPart(kErrorReasonUrl, status), GetPart(kErrorFieldUrl, status),
                     GetPart(kErrorValueUrl, status), GetPart(kErrorLegalUrl, status)};
}

}  // namespace ltx::pipeline
