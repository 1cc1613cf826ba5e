#ifndef LTX_ENGINE_PIPELINE_ERROR_DETAILS_H_
#define LTX_ENGINE_PIPELINE_ERROR_DETAILS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ltx::pipeline {

/// Reasons of errors, for machines. The message is for people and may change; these do not.
inline constexpr absl::string_view kReasonFrameGrid = "FRAME_GRID";
inline constexpr absl::string_view kReasonFrameLimit = "FRAME_LIMIT";
inline constexpr absl::string_view kReasonSizeGrid = "SIZE_GRID";
inline constexpr absl::string_view kReasonSizeLimit = "SIZE_LIMIT";
inline constexpr absl::string_view kReasonFrameRate = "FRAME_RATE";
inline constexpr absl::string_view kReasonPromptLength = "PROMPT_LENGTH";
inline constexpr absl::string_view kReasonPromptEncoding = "PROMPT_ENCODING";
/// A known field that the chosen recipe cannot honour.
inline constexpr absl::string_view kReasonUnsupportedField = "UNSUPPORTED_FIELD_FOR_MODE";
/// A name or number outside a closed list.
inline constexpr absl::string_view kReasonUnknownValue = "UNKNOWN_VALUE";
/// The chosen recipe needs a kind of model or a component that is not loaded.
inline constexpr absl::string_view kReasonModelKind = "MODEL_KIND_MISMATCH";
inline constexpr absl::string_view kReasonComponentMissing = "COMPONENT_MISSING";
/// Files that do not belong together: widths or channel counts of two components disagree.
inline constexpr absl::string_view kReasonComponentMismatch = "COMPONENT_MISMATCH";
/// A latent, a frame or a sample became NaN or infinite.
inline constexpr absl::string_view kReasonNonFinite = "NONFINITE_OUTPUT";

/// Payload keys under which a status carries the parts of an ErrorDetail, each a plain string.
inline constexpr absl::string_view kErrorReasonUrl = "ltx.pipeline/reason";
inline constexpr absl::string_view kErrorFieldUrl = "ltx.pipeline/field";
inline constexpr absl::string_view kErrorValueUrl = "ltx.pipeline/value";
inline constexpr absl::string_view kErrorLegalUrl = "ltx.pipeline/legal";

/// What a machine can act on. Empty strings stand for "does not apply".
struct ErrorDetail {
  std::string reason;  ///< UPPER_SNAKE, one of the constants above.
  std::string field;   ///< Name of the request's field, e.g. "num_frames".
  std::string value;   ///< What was given.
  std::string legal;   ///< What would be accepted, e.g. "113 or 121".
};

/// `status` with the detail attached. Must not be OK.
absl::Status WithDetail(absl::Status status, const ErrorDetail& detail);

/// INVALID_ARGUMENT (UNKNOWN_VALUE): `name` is none of the `legal` ones ("a, b, c") of a field.
absl::Status UnknownNameError(absl::string_view field, absl::string_view name,
                              absl::string_view legal);

/// The detail of a status, if it carries one.
std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_ERROR_DETAILS_H_
