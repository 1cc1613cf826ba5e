#ifndef LTX_ENGINE_PIPELINE_REQUEST_FIELDS_H_
#define LTX_ENGINE_PIPELINE_REQUEST_FIELDS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/recipe.h"

namespace ltx::pipeline {

/// A field of a request that not every recipe can honour.
struct RequestField {
  /// As on the wire.
  absl::string_view name;
  /// The value as text if the request sets it.
  std::optional<std::string> (*value)(const GenerationRequest& request);
  /// Whether a recipe can honour it, given the other choices of the request.
  bool (*honoured)(const RecipeTraits& traits, const GenerationRequest& request);
};

/// All such fields. Those that are not listed (prompt, seed, frame rate, ...) mean the same in
/// every recipe.
absl::Span<const RequestField> RecipeDependentFields();

/// INVALID_ARGUMENT (UNSUPPORTED_FIELD_FOR_MODE) naming the first field that is set and cannot be
/// honoured, or that another field leaves without effect.
absl::Status CheckRecipeFields(const GenerationRequest& request);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_REQUEST_FIELDS_H_
