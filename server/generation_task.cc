#include "server/generation_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "engine/media/mp4_writer.h"
#include "engine/media/pixel_convert.h"
#include "engine/media/png_writer.h"
#include "engine/pipeline/error_details.h"
#include "engine/verify/clip_verifier.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "server/reasons.h"
#include "server/request_mapping.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// Frames encoded between two looks at the cancellation: a fraction of a second at any size that
/// the models make.
constexpr int64_t kFramesPerMuxUnit = 8;
/// Label of metrics until requests are assigned to rungs.
constexpr absl::string_view kNoRung = "";

}  // namespace

/// A finished generation on the host.
struct GenerationTask::Clip {
  int64_t num_frames = 0;
  int height = 0;
  int width = 0;
  pipeline::FrameRate frame_rate;
  std::vector<float> frames;
  std::vector<uint8_t> bytes;
  std::vector<float> waveform;
  int sample_rate = 0;

  bool single_frame() const { return num_frames == 1; }
  absl::Span<const float> Frames(int64_t begin, int64_t end) const {
    const int64_t values = static_cast<int64_t>(height) * width * 3;
    return absl::MakeConstSpan(frames).subspan(begin * values, (end - begin) * values);
  }
};

GenerationTask::GenerationTask(std::string id, absl::Time deadline, const pipeline::Model* model,
                               pipeline::GenerationRequest request, OutputTarget target,
                               std::shared_ptr<GenerationSink> sink,
                               std::atomic<int>* running_phase, ServerMetrics* metrics)
    : Job(std::move(id), deadline),
      model_(model),
      request_(std::move(request)),
      target_(std::move(target)),
      sink_(std::move(sink)),
      running_phase_(running_phase),
      metrics_(metrics),
      created_(absl::Now()) {}

void GenerationTask::OnQueued(int ahead) {
  v1::GenerateVideoEvent event;
  event.mutable_queued()->set_job_id(id());
  event.mutable_queued()->set_position(ahead);
  sink_->Send(std::move(event));
}

absl::Status GenerationTask::Run() {
  started_ = absl::Now();
  metrics_->ObserveQueueSeconds(absl::ToDoubleSeconds(started_ - created_));
  MemoryLedger& ledger = model_->device().ledger();
  ledger.ResetPeaks();
  spdlog::info("job {} starts: {} {}x{}x{}, seed {}", id(),
               std::string(pipeline::RecipeName(request_.recipe)), request_.width, request_.height,
               request_.num_frames, request_.seed);
  LTX_ASSIGN_OR_RETURN(std::unique_ptr<pipeline::GenerationJob> job,
                       pipeline::GenerationJob::Create(model_, request_));
  const int mux_units =
      static_cast<int>((request_.num_frames + kFramesPerMuxUnit - 1) / kFramesPerMuxUnit) + 1;
  units_total_ = static_cast<int>(job->plan().size()) + mux_units;
  SendAdmitted(*job, mux_units);
  LTX_RETURN_IF_ERROR(Generate(job.get()));

  Clip clip;
  {
    LTX_ASSIGN_OR_RETURN(pipeline::GenerationResult result, job->TakeResult());
    Device& device = model_->device();
    LTX_ASSIGN_OR_RETURN(clip.frames, ToFloats(device, result.frames));
    LTX_ASSIGN_OR_RETURN(clip.waveform, ToFloats(device, result.waveform));
    clip.num_frames = result.frames.dim(0);
    clip.height = static_cast<int>(result.frames.dim(1));
    clip.width = static_cast<int>(result.frames.dim(2));
    clip.sample_rate = static_cast<int>(result.sample_rate);
    clip.frame_rate = request_.frame_rate;
    for (const pipeline::PhaseSeconds& phase : result.phases) {
      v1::PhaseTiming* timing = report_.add_timings();
      timing->set_phase(ToWire(phase.phase));
      timing->set_seconds(phase.seconds);
      metrics_->ObservePhaseSeconds(pipeline::PhaseName(phase.phase), phase.seconds);
    }
  }
  FillReport(*job);
  AddMemory(ledger.Read(), report_.mutable_memory());
  job.reset();

  const absl::Time mux_start = absl::Now();
  LTX_RETURN_IF_ERROR(Encode(&clip));
  v1::PhaseTiming* timing = report_.add_timings();
  timing->set_phase(v1::PHASE_MUX);
  timing->set_seconds(absl::ToDoubleSeconds(absl::Now() - mux_start));
  metrics_->ObservePhaseSeconds("mux", timing->seconds());
  report_.set_run_seconds(absl::ToDoubleSeconds(absl::Now() - started_));
  return absl::OkStatus();
}

absl::Status GenerationTask::Generate(pipeline::GenerationJob* job) {
  while (!job->done()) {
    LTX_RETURN_IF_ERROR(cancellation().Check());
    running_phase_->store(ToWire(job->plan()[job->completed()].phase));
    LTX_ASSIGN_OR_RETURN(const pipeline::UnitReport unit, job->Advance());
    spdlog::debug("job {}: {} {}/{} took {:.3f} s", id(),
                  std::string(pipeline::PhaseName(unit.unit.phase)), unit.unit.index,
                  unit.unit.count, unit.seconds);
    if (unit.unit.phase == pipeline::Phase::kStage1 ||
        unit.unit.phase == pipeline::Phase::kStage2) {
      metrics_->ObserveStepSeconds(
          kNoRung, absl::AsciiStrToLower(DTypeName(model_->compute_dtype())), unit.seconds);
    }
    Report(ToWire(unit.unit.phase), unit.unit.index, unit.unit.count);
  }
  return absl::OkStatus();
}

absl::Status GenerationTask::Encode(Clip* clip) {
  running_phase_->store(v1::PHASE_MUX);
  const char* ending = clip->single_frame() ? ".png" : ".mp4";
  const std::string path =
      target_.path.empty() ? absl::StrCat(target_.work_dir, "/", id(), ending) : target_.path;
  // Judged before the file is put in place, so that a broken clip never stands under its name.
  clip->bytes.resize(clip->frames.size());
  media::UnitToBytes(clip->frames, absl::MakeSpan(clip->bytes));
  LTX_RETURN_IF_ERROR(Verify(*clip));
  LTX_RETURN_IF_ERROR(EncodeMp4(clip, path));
  if (target_.path.empty()) {
    LTX_ASSIGN_OR_RETURN(
        media_, MediaFile::TakeOver(path, clip->single_frame() ? "image/png" : "video/mp4"));
  }
  report_.set_output_path(target_.path);
  return absl::OkStatus();
}

absl::Status GenerationTask::EncodeMp4(Clip* clip, const std::string& path) {
  const int units = units_total_ - units_done_;
  int unit = 0;
  if (clip->single_frame()) {
    LTX_ASSIGN_OR_RETURN(const int64_t bytes,
                         media::WritePng(path, clip->frames, clip->width, clip->height));
    report_.set_media_bytes(bytes);
    while (unit < units) Report(v1::PHASE_MUX, ++unit, units);
    return absl::OkStatus();
  }
  media::Mp4Options options;
  options.width = clip->width;
  options.height = clip->height;
  options.frame_rate = clip->frame_rate;
  options.audio_sample_rate = clip->sample_rate;
  LTX_ASSIGN_OR_RETURN(const auto writer, media::Mp4Writer::Create(path, options));
  for (int64_t begin = 0; begin < clip->num_frames; begin += kFramesPerMuxUnit) {
    LTX_RETURN_IF_ERROR(cancellation().Check());
    const int64_t end = std::min(begin + kFramesPerMuxUnit, clip->num_frames);
    LTX_RETURN_IF_ERROR(writer->AddFrames(clip->Frames(begin, end)));
    Report(v1::PHASE_MUX, ++unit, units);
  }
  LTX_RETURN_IF_ERROR(cancellation().Check());
  LTX_ASSIGN_OR_RETURN(const int64_t bytes, writer->Finish(clip->waveform));
  report_.set_media_bytes(bytes);
  report_.set_audio_samples(
      media::AudioSamplesForFrames(clip->num_frames, clip->frame_rate, clip->sample_rate));
  report_.set_audio_sample_rate(clip->sample_rate);
  Report(v1::PHASE_MUX, ++unit, units);
  return absl::OkStatus();
}

absl::Status GenerationTask::Verify(const Clip& clip) {
  verify::ClipView view;
  view.frames = clip.bytes;
  view.num_frames = clip.num_frames;
  view.height = clip.height;
  view.width = clip.width;
  view.waveform = clip.waveform;
  view.audio_channels = clip.waveform.empty() ? 0 : 2;
  view.audio_sample_rate = clip.sample_rate;
  LTX_ASSIGN_OR_RETURN(const verify::ClipReport figures, verify::VerifyClip(view));
  *report_.mutable_verifier() = ToWire(figures);
  if (figures.passed) return absl::OkStatus();
  return pipeline::WithDetail(
      absl::InternalError(absl::StrCat("the clip that came out is not presentable: ",
                                       absl::StrJoin(figures.failures, "; "))),
      {std::string(kReasonDegenerateOutput), "", "", ""});
}

void GenerationTask::Report(v1::Phase phase, int unit, int units) {
  ++units_done_;
  v1::GenerateVideoEvent event;
  v1::Progress* progress = event.mutable_progress();
  progress->set_phase(phase);
  progress->set_unit(unit);
  progress->set_units(units);
  progress->set_units_done(units_done_);
  progress->set_units_total(units_total_);
  const double elapsed = absl::ToDoubleSeconds(absl::Now() - started_);
  progress->set_elapsed_seconds(elapsed);
  progress->set_eta_seconds(elapsed / units_done_ * (units_total_ - units_done_));
  sink_->Send(std::move(event));
}

void GenerationTask::SendAdmitted(const pipeline::GenerationJob& job, int mux_units) {
  v1::GenerateVideoEvent event;
  v1::Admitted* admitted = event.mutable_admitted();
  admitted->set_job_id(id());
  *admitted->mutable_parameters() = ToWire(job.parameters());
  for (const pipeline::WorkUnit& unit : job.plan()) {
    if (unit.index != 1) continue;
    v1::PhasePlan* phase = admitted->add_phases();
    phase->set_phase(ToWire(unit.phase));
    phase->set_units(unit.count);
  }
  v1::PhasePlan* mux = admitted->add_phases();
  mux->set_phase(v1::PHASE_MUX);
  mux->set_units(mux_units);
  sink_->Send(std::move(event));
}

void GenerationTask::FillReport(const pipeline::GenerationJob& job) {
  const pipeline::EffectiveParameters& parameters = job.parameters();
  report_.set_job_id(id());
  report_.set_model_name(model_->name());
  report_.set_model_version(model_->version());
  report_.set_device(model_->device().name());
  *report_.mutable_parameters() = ToWire(parameters);
  report_.set_queue_seconds(absl::ToDoubleSeconds(started_ - created_));
  report_.set_prompt_tokens(static_cast<int32_t>(parameters.prompt_tokens));
  report_.set_dropped_prompt_tokens(static_cast<int32_t>(parameters.dropped_prompt_tokens));
  if (parameters.dropped_prompt_tokens > 0) {
    report_.add_warnings(absl::StrCat("the prompt is too long: its last ",
                                      parameters.dropped_prompt_tokens, " tokens had no effect"));
  }
}

void GenerationTask::OnEnd(const absl::Status& status) {
  metrics_->CountRequest(pipeline::RecipeName(request_.recipe), kNoRung, status.code());
  // A job that never ran must not touch what Health says of the running one.
  if (started_ != absl::Time()) running_phase_->store(v1::PHASE_UNSPECIFIED);
  if (status.ok()) {
    spdlog::info("job {} succeeded in {:.2f} s after {:.2f} s in the queue", id(),
                 report_.run_seconds(), report_.queue_seconds());
    sink_->Complete(std::move(media_), std::move(report_));
    return;
  }
  spdlog::warn("job {} ended: {}", id(), status.ToString());
  sink_->Fail(status);
}

}  // namespace ltx::server
