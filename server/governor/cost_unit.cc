#include "server/governor/cost_unit.h"

namespace ltx::server {

absl::string_view CostKindName(CostKind kind) {
  static constexpr absl::string_view kNames[kCostKindCount] = {
      "text", "enhance", "fuse", "forward", "upsample", "video_decode", "audio_decode", "mux"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace ltx::server
