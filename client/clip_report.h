#ifndef LTX_CLIENT_CLIP_REPORT_H_
#define LTX_CLIENT_CLIP_REPORT_H_

#include <string>

#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::client {

/// One line on stdout about the clip that now lies at `path`, and the warnings on stderr.
void PrintReport(const v1::GenerationReport& report, const std::string& path);

}  // namespace ltx::client

#endif  // LTX_CLIENT_CLIP_REPORT_H_
