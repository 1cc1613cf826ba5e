#include "server/governor/rung_ladder.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ltx::server {
namespace {

/// Frames of one latent frame behind the first.
constexpr int64_t kFrameStep = 8;

int64_t RoundDown(int64_t value, int64_t multiple) { return value / multiple * multiple; }

absl::Status CheckRung(const Rung& rung) {
  const Geometry& g = rung.geometry;
  if (g.width < 1 || g.height < 1 || g.num_frames < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("rung \"", rung.name, "\": ", g.ToString(), " has an extent below 1"));
  }
  if (!(rung.max_seconds >= 0) || !std::isfinite(rung.max_seconds) || rung.max_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rung \"", rung.name, "\": max_seconds ", rung.max_seconds, " and max_bytes ",
                     rung.max_bytes, " must be finite and not negative; 0 stands for no limit"));
  }
  return absl::OkStatus();
}

}  // namespace

bool Geometry::Contains(const Geometry& other) const {
  return other.num_frames <= num_frames &&
         std::max(other.width, other.height) <= std::max(width, height) &&
         std::min(other.width, other.height) <= std::min(width, height);
}

std::string Geometry::ToString() const { return absl::StrCat(width, "x", height, "x", num_frames); }

absl::StatusOr<RungLadder> RungLadder::Create(std::vector<Rung> rungs) {
  std::set<std::string> names;
  for (Rung& rung : rungs) {
    if (rung.name.empty()) rung.name = rung.geometry.ToString();
    const absl::Status status = CheckRung(rung);
    if (!status.ok()) return status;
    if (!names.insert(rung.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("rung \"", rung.name, "\" stands there twice; names must differ"));
    }
  }
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    return a.geometry.volume() < b.geometry.volume();
  });
  RungLadder ladder;
  ladder.rungs_ = std::move(rungs);
  return ladder;
}

RungLadder RungLadder::FromModel(const Geometry& defaults, const Geometry& smallest,
                                 const Geometry& largest, int64_t multiple) {
  std::set<std::string> seen;
  std::vector<Rung> rungs;
  const auto add = [&](const Geometry& wanted) {
    Rung rung;
    const auto side = [multiple](int64_t value, int64_t low, int64_t high) {
      const int64_t least = (low + multiple - 1) / multiple * multiple;
      return std::max(least, RoundDown(std::min(value, high), multiple));
    };
    rung.geometry.width = side(wanted.width, smallest.width, largest.width);
    rung.geometry.height = side(wanted.height, smallest.height, largest.height);
    const int64_t frames = std::clamp(wanted.num_frames, smallest.num_frames, largest.num_frames);
    rung.geometry.num_frames = RoundDown(frames - 1, kFrameStep) + 1;
    rung.name = rung.geometry.ToString();
    if (seen.insert(rung.name).second) rungs.push_back(std::move(rung));
  };
  for (const int64_t halves : {1, 2, 3, 4, 6}) {
    for (const int64_t lengths : {1, 2}) {
      add({defaults.width * halves / 2, defaults.height * halves / 2,
           (defaults.num_frames - 1) * lengths + 1});
    }
  }
  // Exactly: nothing that the model takes may lie above the ladder.
  Rung last;
  last.geometry = largest;
  last.name = largest.ToString();
  if (seen.insert(last.name).second) rungs.push_back(last);
  // What was made here is legal.
  return RungLadder::Create(std::move(rungs)).value();
}

const Rung* RungLadder::RungFor(const Geometry& clip) const {
  for (const Rung& rung : rungs_) {
    if (rung.geometry.Contains(clip)) return &rung;
  }
  return nullptr;
}

}  // namespace ltx::server
