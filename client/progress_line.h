#ifndef LTX_CLIENT_PROGRESS_LINE_H_
#define LTX_CLIENT_PROGRESS_LINE_H_

#include <cstdio>
#include <string>

#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::client {

/// "stage 1", "video decode", ...
std::string PhaseText(v1::Phase phase);

/// One line for one event: "[#####.....] 52%  stage 2 1/3  0:01 left". `width` is that of the bar
/// in characters. Empty for events that show nothing.
std::string ProgressText(const v1::GenerateVideoEvent& event, int width);

/// Shows events on a terminal by rewriting one line, elsewhere by one line a phase.
class ProgressDisplay {
 public:
  /// `out` must outlive the display.
  ProgressDisplay(std::FILE* out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}
  void Show(const v1::GenerateVideoEvent& event);
  /// Clears the line, so that what follows starts on an empty one.
  void Clear();

 private:
  std::FILE* const out_;
  const bool is_terminal_;
  size_t shown_ = 0;
};

}  // namespace ltx::client

#endif  // LTX_CLIENT_PROGRESS_LINE_H_
