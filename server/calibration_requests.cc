#include "server/calibration_requests.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "engine/pipeline/recipe.h"

namespace ltx::server {
namespace {

/// Beyond it a clip costs more than it tells: time grows in proportion, or faster.
constexpr double kMostVolume = 4;

}  // namespace

std::vector<pipeline::GenerationRequest> CalibrationRequests(
    const pipeline::GenerationRequest& usual, int64_t min_frames, const RungLadder& ladder,
    absl::FunctionRef<absl::Status(const pipeline::GenerationRequest&)> validate) {
  std::set<std::string> seen;
  std::vector<pipeline::GenerationRequest> requests;
  const auto add = [&](const Geometry& size) {
    pipeline::GenerationRequest request = usual;
    request.width = size.width;
    request.height = size.height;
    request.num_frames = size.num_frames;
    if (seen.insert(size.ToString()).second && validate(request).ok()) {
      requests.push_back(std::move(request));
    }
  };
  const int64_t shortest = (min_frames + 6) / 8 * 8 + 1;
  if (!ladder.rungs().empty()) {
    Geometry smallest = ladder.rungs().front().geometry;
    smallest.num_frames = shortest;
    add(smallest);
  }
  const Geometry defaults = {usual.width, usual.height, usual.num_frames};
  add(defaults);
  const int64_t quarter = std::max(shortest, (defaults.num_frames - 1) / 32 * 8 + 1);
  const int64_t multiple = pipeline::SizeMultiple(usual.recipe);
  for (const int64_t fourths : {4, 2, 6, 3, 5}) {
    add({defaults.width * fourths / 4 / multiple * multiple,
         defaults.height * fourths / 4 / multiple * multiple, quarter});
  }
  for (const Rung& rung : ladder.rungs()) {
    if (rung.geometry.volume() <= kMostVolume * defaults.volume()) add(rung.geometry);
  }
  return requests;
}

}  // namespace ltx::server
