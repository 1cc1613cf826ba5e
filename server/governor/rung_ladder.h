#ifndef LTX_SERVER_GOVERNOR_RUNG_LADDER_H_
#define LTX_SERVER_GOVERNOR_RUNG_LADDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ltx::server {

/// Width, height and length of a clip.
struct Geometry {
  int64_t width = 0;
  int64_t height = 0;
  int64_t num_frames = 0;

  /// Pixels of all frames.
  double volume() const {
    return static_cast<double>(width) * static_cast<double>(height) *
           static_cast<double>(num_frames);
  }
  /// Whether `other` fits into this, either way up.
  bool Contains(const Geometry& other) const;
  /// "768x512x121".
  std::string ToString() const;
};

/// A step of the ladder: clips up to a geometry, and what one of them may cost.
struct Rung {
  /// Default: the geometry.
  std::string name;
  Geometry geometry;
  /// Seconds of device time, encoding included; 0: no limit.
  double max_seconds = 0;
  /// Peak bytes of device memory, weights included; 0: what the device has.
  int64_t max_bytes = 0;
};

/// The rungs of a server, smallest first.
class RungLadder {
 public:
  RungLadder() = default;
  /// Sorts by pixels and fills in names. INVALID_ARGUMENT for extents below one, negative budgets,
  /// or a name twice.
  static absl::StatusOr<RungLadder> Create(std::vector<Rung> rungs);
  /// A ladder without budgets of its own for a server that names none: the default geometry at
  /// half, full, one and a half, two and three times its sides, each with the default and about
  /// twice the default length, cut to what the model takes, and what it takes at most. Sides of
  /// all but the last are multiples of `multiple`, lengths 8 k + 1.
  static RungLadder FromModel(const Geometry& defaults, const Geometry& smallest,
                              const Geometry& largest, int64_t multiple);

  const std::vector<Rung>& rungs() const { return rungs_; }
  /// The smallest rung that contains the clip; null if none does.
  const Rung* RungFor(const Geometry& clip) const;

 private:
  std::vector<Rung> rungs_;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_RUNG_LADDER_H_
