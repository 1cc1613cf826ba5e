#ifndef LTX_CLIENT_RECIPE_HELP_H_
#define LTX_CLIENT_RECIPE_HELP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ltx::client {

/// What a recipe does, needs and takes, for people: its stages, the defaults by generation of
/// models, the flags it honours beyond the common ones. For a name that is none: one line for each
/// recipe.
std::string RecipeHelp(absl::string_view name);

}  // namespace ltx::client

#endif  // LTX_CLIENT_RECIPE_HELP_H_
