#include "client/clip_report.h"

#include <cstdio>

namespace ltx::client {

void PrintReport(const v1::GenerationReport& report, const std::string& path) {
  const v1::EffectiveParameters& parameters = report.parameters();
  std::printf("%s: %dx%d, %d frames, seed %llu, recipe %s, %.2f s\n", path.c_str(),
              parameters.width(), parameters.height(), parameters.num_frames(),
              static_cast<unsigned long long>(parameters.seed()), parameters.recipe().c_str(),
              report.run_seconds());
  for (const std::string& warning : report.warnings()) {
    std::fprintf(stderr, "ltx: warning: %s\n", warning.c_str());
  }
}

}  // namespace ltx::client
