#include "client/clip_report.h"

#include <cstdio>

#include "absl/strings/str_format.h"

namespace ltx::client {

void PrintReport(const v1::GenerationReport& report, const std::string& path) {
  const v1::EffectiveParameters& parameters = report.parameters();
  // A recipe of sound alone has no picture to measure.
  const std::string extent =
      parameters.width() > 0
          ? absl::StrFormat("%dx%d, %d frames", parameters.width(), parameters.height(),
                            parameters.num_frames())
          : absl::StrFormat("sound, %.2f s", static_cast<double>(report.audio_samples()) /
                                                 report.audio_sample_rate());
  std::printf("%s: %s, seed %llu, recipe %s, %.2f s\n", path.c_str(), extent.c_str(),
              static_cast<unsigned long long>(parameters.seed()), parameters.recipe().c_str(),
              report.run_seconds());
  if (parameters.enhancement_max_tokens() > 0) {
    std::printf("prompt: %s\n", parameters.enhanced_prompt().c_str());
  }
  for (const std::string& warning : report.warnings()) {
    std::fprintf(stderr, "ltx: warning: %s\n", warning.c_str());
  }
}

}  // namespace ltx::client
