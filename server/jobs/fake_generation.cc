#include "server/jobs/fake_generation.h"

#include <utility>

#include "absl/types/span.h"
#include "engine/media/atomic_file.h"
#include "kernels/status_macros.h"

namespace ltx::server {
namespace {

constexpr char kMimeType[] = "video/mp4";

}  // namespace

absl::Status FakeGeneration::Start(int /*device*/) {
  v1::GenerateVideoEvent event;
  event.mutable_admitted()->set_job_id(job_id_);
  event.mutable_admitted()->mutable_parameters()->set_recipe("fake");
  sink_->Send(std::move(event));
  return absl::OkStatus();
}

absl::StatusOr<UnitOutcome> FakeGeneration::AdvanceUnit() {
  ++unit_;
  sink_->Enter(v1::PHASE_STAGE_1);
  if (options_.run) LTX_RETURN_IF_ERROR(options_.run(unit_));
  v1::GenerateVideoEvent event;
  v1::Progress* const progress = event.mutable_progress();
  progress->set_phase(v1::PHASE_STAGE_1);
  progress->set_unit(unit_);
  progress->set_units(options_.units);
  progress->set_units_done(unit_);
  progress->set_units_total(options_.units);
  sink_->Send(std::move(event));
  const bool done = unit_ == options_.units;
  if (done) LTX_RETURN_IF_ERROR(Deliver());
  return UnitOutcome{done, options_.unit_seconds};
}

absl::Status FakeGeneration::Deliver() {
  v1::GenerationReport report;
  report.set_job_id(job_id_);
  if (options_.clip_bytes == 0) return sink_->Deliver(std::move(report), "");
  const std::string clip = Clip(job_id_, options_.clip_bytes);
  LTX_ASSIGN_OR_RETURN(media::AtomicFile file,
                       media::AtomicFile::Create(sink_->ClipPath(kMimeType)));
  LTX_RETURN_IF_ERROR(
      file.Write(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(clip.data()), clip.size())));
  LTX_RETURN_IF_ERROR(file.Commit());
  return sink_->Deliver(std::move(report), kMimeType);
}

std::string FakeGeneration::Clip(const std::string& job_id, int64_t bytes) {
  std::string clip;
  while (static_cast<int64_t>(clip.size()) < bytes) clip += job_id;
  clip.resize(bytes);
  return clip;
}

}  // namespace ltx::server
