#include "client/progress_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ltx::client {
namespace {

/// Fits the whole line into 80 columns.
constexpr int kBarWidth = 30;

std::string ClockText(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::max(seconds, 0.0)));
  return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
}

}  // namespace

std::string PhaseText(v1::Phase phase) {
  switch (phase) {
    case v1::PHASE_TEXT:
      return "text";
    case v1::PHASE_STAGE_1:
      return "stage 1";
    case v1::PHASE_UPSAMPLE:
      return "upsample";
    case v1::PHASE_STAGE_2:
      return "stage 2";
    case v1::PHASE_VIDEO_DECODE:
      return "video decode";
    case v1::PHASE_AUDIO_DECODE:
      return "audio decode";
    case v1::PHASE_MUX:
      return "encode";
    case v1::PHASE_LORA_FUSION:
      return "LoRA";
    case v1::PHASE_ENHANCE:
      return "enhance";
    default:
      return "";
  }
}

std::string ProgressText(const v1::GenerateVideoEvent& event, int width) {
  if (event.has_queued()) {
    return event.queued().position() == 0
               ? std::string("queued")
               : absl::StrCat("queued, ", event.queued().position(), " ahead");
  }
  if (!event.has_progress()) return "";
  const v1::Progress& progress = event.progress();
  const int total = std::max(progress.units_total(), 1);
  const int done = std::clamp(progress.units_done(), 0, total);
  const int filled = width * done / total;
  std::string place =
      absl::StrCat(PhaseText(progress.phase()), " ", progress.unit(), "/", progress.units());
  if (!progress.passes().empty()) absl::StrAppend(&place, " ", progress.passes());
  return absl::StrFormat("[%s%s] %3d%%  %s  %s left", std::string(filled, '#'),
                         std::string(width - filled, '.'), 100 * done / total, place,
                         ClockText(progress.eta_seconds()));
}

void ProgressDisplay::Show(const v1::GenerateVideoEvent& event) {
  const std::string text = ProgressText(event, kBarWidth);
  if (text.empty()) return;
  if (!is_terminal_) {
    const bool inside_phase =
        event.has_progress() && event.progress().unit() != event.progress().units();
    if (inside_phase) return;
    std::fprintf(out_, "%s\n", text.c_str());
    std::fflush(out_);
    return;
  }
  const size_t padding = shown_ > text.size() ? shown_ - text.size() : 0;
  std::fprintf(out_, "\r%s%s", text.c_str(), std::string(padding, ' ').c_str());
  std::fflush(out_);
  shown_ = text.size();
}

void ProgressDisplay::Clear() {
  if (!is_terminal_ || shown_ == 0) return;
  std::fprintf(out_, "\r%s\r", std::string(shown_, ' ').c_str());
  std::fflush(out_);
  shown_ = 0;
}

}  // namespace ltx::client
