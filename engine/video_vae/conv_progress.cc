#include "engine/video_vae/conv_progress.h"

#include <algorithm>

namespace ltx::video_vae {

int64_t ConvProgress::Reach(int64_t ready) const {
  int64_t reach = std::max<int64_t>(ready - after_, 0) / 2 * 2;
  if (frames_ - reach == 1) reach -= 2;
  return std::max<int64_t>(reach, 0);
}

ConvPart ConvProgress::Next(int64_t ready) {
  ConvPart part;
  part.begin = done_;
  part.end = std::max(done_, std::min(frames_, Reach(ready)));
  part.read_begin = needed_from();
  part.read_end = std::min(frames_, part.end + after_);
  part.ends.first = part.begin == 0;
  part.ends.last = part.end == frames_;
  done_ = part.end;
  return part;
}

int64_t FramesPerPart(int64_t wanted, int64_t positions) {
  const int64_t pairs = (wanted + 2 * positions - 1) / (2 * positions);
  return 2 * std::max<int64_t>(pairs, 1);
}

}  // namespace ltx::video_vae
