#include "server/generation_task.h"

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "engine/media/mp4_writer.h"
#include "engine/media/png_writer.h"
#include "engine/media/wav_writer.h"
#include "engine/pipeline/error_details.h"
#include "engine/pipeline/job_options.h"
#include "engine/verify/clip_verifier.h"
#include "google/protobuf/util/json_util.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"
#include "server/logging.h"
#include "server/partial_result.h"
#include "server/plan_mapping.h"
#include "server/reasons.h"
#include "server/request_mapping.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// Frames encoded between two looks at the cancellation: a fraction of a second at any size that
/// the models make.
constexpr int64_t kFramesPerMuxUnit = 8;

/// The higher peaks of two stretches of time; live amounts of the later one.
MemoryLedger::Snapshot MergePeaks(const MemoryLedger::Snapshot& earlier,
                                  MemoryLedger::Snapshot later) {
  const auto merge = [](const MemoryLedger::Amounts& before, MemoryLedger::Amounts* after) {
    after->peak_bytes = std::max(after->peak_bytes, before.peak_bytes);
  };
  merge(earlier.total, &later.total);
  for (int i = 0; i < kMemoryOwnerCount; ++i) merge(earlier.by_owner[i], &later.by_owner[i]);
  return later;
}

/// Units that found made what they would have made.
uint64_t CacheHits(const pipeline::Model& model) {
  const pipeline::FusedCache* const fused = model.fused_cache();
  return model.prompt_cache_stats().hits + (fused == nullptr ? 0 : fused->stats().hits);
}

/// The same status with a remark at the end of its message.
absl::Status WithRemark(const absl::Status& status, absl::string_view remark) {
  absl::Status remarked(status.code(), absl::StrCat(status.message(), "; ", remark));
  status.ForEachPayload([&remarked](absl::string_view type, const absl::Cord& payload) {
    remarked.SetPayload(type, payload);
  });
  return remarked;
}

/// Cores for work on the host beside the device.
int HostThreads(const Device& device) {
  const int threads = device.properties().threads;
  return threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

/// A finished generation on the host.
struct GenerationTask::Clip {
  /// Extents are 0 in sound alone.
  int height = 0;
  int width = 0;
  /// RGB, in display order.
  std::vector<HostBytes> parts;
  std::vector<float> waveform;
  int sample_rate = 0;
  /// Per channel, as many as belong to the clip's length; 0 without sound.
  int64_t audio_samples = 0;
  /// Nothing is left but to write the file.
  bool judged = false;

  std::vector<absl::Span<const uint8_t>> Frames() const {
    std::vector<absl::Span<const uint8_t>> frames;
    for (const HostBytes& part : parts) {
      for (const absl::Span<const uint8_t> frame :
           verify::SplitFrames(part.bytes(), size_t{3} * height * width)) {
        frames.push_back(frame);
      }
    }
    return frames;
  }
};

GenerationTask::GenerationTask(std::string id, const pipeline::Model* model, Governor* governor,
                               Order order, std::shared_ptr<GenerationSink> sink,
                               ServerMetrics* metrics)
    : id_(std::move(id)),
      model_(model),
      governor_(governor),
      request_(std::move(order.request)),
      kind_(MediaKindOf(request_)),
      plan_(std::move(order.plan)),
      output_path_(std::move(order.output_path)),
      keep_partial_results_(order.keep_partial_results),
      sink_(std::move(sink)),
      metrics_(metrics),
      previews_(order.preview_every_steps > 0
                    ? std::make_unique<PreviewMaker>(order.preview_every_steps, model,
                                                     std::move(order.projection))
                    : nullptr),
      created_(absl::Now()),
      monitor_(Governor::Monitor(*plan_)),
      clip_(std::make_unique<Clip>()) {}

GenerationTask::~GenerationTask() = default;

absl::Status GenerationTask::Start(int /*device*/) {
  const LogJob log(id_);
  started_ = absl::Now();
  metrics_->ObserveQueueSeconds(absl::ToDoubleSeconds(started_ - created_));
  model_->device().PrepareAhead(plan_->new_attentions);
  model_->device().ledger().ResetPeaks();
  held_by_others_ = governor_->ActivationBytes();
  spdlog::info("starts: {} {}x{}x{}, seed {}", std::string(pipeline::RecipeName(request_.recipe)),
               request_.width, request_.height, request_.num_frames, request_.seed);
  pipeline::JobOptions job_options;
  if (previews_ != nullptr) job_options.observer = previews_->observer();
  LTX_ASSIGN_OR_RETURN(job_, pipeline::GenerationJob::Create(model_, request_, job_options));
  CountMuxUnits(job_->parameters().num_frames);
  units_total_ = static_cast<int>(job_->plan().size()) + mux_units_;
  SendAdmitted();
  return absl::OkStatus();
}

absl::StatusOr<UnitOutcome> GenerationTask::AdvanceUnit() {
  const LogJob log(id_);
  const absl::Time start = absl::Now();
  UnitOutcome outcome;
  if (clip_->judged) {
    LTX_ASSIGN_OR_RETURN(outcome.done, AdvanceMux());
  } else if (job_->done()) {
    sink_->Enter(v1::PHASE_MUX);
    LTX_RETURN_IF_ERROR(TakeClip());
    mux_time_ += absl::Now() - start;
  } else {
    LTX_RETURN_IF_ERROR(AdvanceEngine());
  }
  outcome.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return outcome;
}

void GenerationTask::OnSuspend() {
  suspended_since_ = absl::Now();
  earlier_peaks_ = MergePeaks(earlier_peaks_, model_->device().ledger().Read());
}

void GenerationTask::OnResume() {
  suspended_ += absl::Now() - suspended_since_;
  model_->device().ledger().ResetPeaks();
}

double GenerationTask::RunSeconds() const {
  return absl::ToDoubleSeconds(absl::Now() - started_ - suspended_);
}

absl::Status GenerationTask::AdvanceEngine() {
  const pipeline::Phase phase = job_->plan()[job_->completed()].phase;
  sink_->Enter(ToWire(phase));
  MakeRoom(phase);
  const size_t index =
      static_cast<size_t>(job_->completed()) + static_cast<size_t>(units_left_out_);
  const uint64_t cache_hits = CacheHits(*model_);
  const absl::StatusOr<pipeline::UnitReport> advanced = job_->Advance();
  // What this job could not have, the next one may need as well.
  if (absl::IsResourceExhausted(advanced.status())) KeepFused(0);
  LTX_ASSIGN_OR_RETURN(const pipeline::UnitReport unit, advanced);
  const int64_t fused_bytes =
      model_->fused_cache() == nullptr ? 0 : model_->fused_cache()->stats().bytes;
  expected_bytes_ = std::max(expected_bytes_, governor_->ExpectedBytes(*plan_, phase, fused_bytes));
  const Preparation& prepared = unit.preparation;
  spdlog::debug("{} {}/{} took {:.4f} s; prepared: {} attentions, {} recorded",
                std::string(pipeline::PhaseName(unit.unit.phase)), unit.unit.index, unit.unit.count,
                unit.seconds, prepared.attentions, prepared.recorded);
  if (unit.unit.phase == pipeline::Phase::kStage1 || unit.unit.phase == pipeline::Phase::kStage2) {
    metrics_->ObserveStepSeconds(plan_->verdict.rung,
                                 absl::AsciiStrToLower(DTypeName(model_->compute_dtype())),
                                 unit.seconds);
  }
  // A prompt that was kept or has become another one says nothing of what encoding the planned one
  // costs, nor does a kept transformer of fusion, and a clip whose length turned out otherwise
  // nothing of the planned one.
  const bool observe = CacheHits(*model_) == cache_hits && !WasWritten(unit.unit) &&
                       job_->parameters().num_frames == plan_->parameters.num_frames;
  absl::Status within_lease = Account(index, unit, observe);
  if (within_lease.ok()) LTX_RETURN_IF_ERROR(TakeFrames());
  // A length may have been predicted, and the decoder says how many units it takes.
  CountMuxUnits(job_->parameters().num_frames);
  units_total_ = unit.total + mux_units_;
  v1::Progress progress;
  progress.set_phase(ToWire(unit.unit.phase));
  progress.set_unit(unit.unit.index);
  progress.set_units(unit.unit.count);
  progress.set_step(unit.unit.step);
  progress.set_steps(unit.unit.steps);
  progress.set_passes(unit.unit.passes);
  if (unit.unit.phase == pipeline::Phase::kEnhance && unit.unit.index == unit.unit.count) {
    progress.set_enhanced_prompt(job_->parameters().enhancement->prompt);
    units_left_out_ += monitor_.EndPhase();
  }
  Report(std::move(progress));
  SendPreview(unit);
  if (within_lease.ok() || !keep_partial_results_) return within_lease;
  const absl::Status kept = KeepPartial();
  if (!kept.ok()) spdlog::warn("no partial result: {}", kept.ToString());
  return WithRemark(within_lease, kept.ok() ? "what there is is kept"
                                            : absl::StrCat("nothing is kept: ", kept.message()));
}

absl::Status GenerationTask::KeepPartial() {
  LTX_ASSIGN_OR_RETURN(const pipeline::PartialResult partial, job_->Partial());
  v1::PartialResult wire;
  wire.set_phase(ToWire(partial.unit.phase));
  wire.set_unit(partial.unit.index);
  wire.set_units(partial.unit.count);
  wire.set_step(partial.step);
  wire.set_steps(partial.unit.steps);
  wire.set_sigma(partial.sigma);
  std::vector<NamedValues> values;
  for (const auto& [name, tensor] : partial.tensors) {
    LTX_ASSIGN_OR_RETURN(std::vector<float> floats, ToFloats(model_->device(), tensor));
    values.push_back({name, tensor.shape(), std::move(floats)});
    wire.add_tensors(name);
  }
  std::string parameters;
  if (!google::protobuf::util::MessageToJsonString(ToWire(job_->parameters()), &parameters).ok()) {
    return absl::InternalError("the parameters do not become JSON");
  }
  const std::map<std::string, std::string> metadata = {
      {"job_id", id_},
      {"phase", std::string(pipeline::PhaseName(partial.unit.phase))},
      {"unit", absl::StrCat(partial.unit.index)},
      {"units", absl::StrCat(partial.unit.count)},
      {"step", absl::StrCat(partial.step)},
      {"steps", absl::StrCat(partial.unit.steps)},
      {"sigma", absl::StrCat(partial.sigma)},
      {"parameters", parameters},
  };
  const bool delivered = output_path_.empty();
  const std::string path =
      delivered ? sink_->ClipPath(kPartialMimeType) : absl::StrCat(output_path_, kPartialEnding);
  LTX_ASSIGN_OR_RETURN(const int64_t bytes, WritePartialResult(path, values, metadata));
  wire.set_total_bytes(bytes);
  if (!delivered) wire.set_path(path);
  return sink_->DeliverPartial(std::move(wire),
                               delivered ? absl::string_view(kPartialMimeType) : "");
}

bool GenerationTask::WasWritten(const pipeline::WorkUnit& unit) const {
  return job_->parameters().enhancement.has_value() && unit.phase == pipeline::Phase::kText &&
         unit.index == 1;
}

absl::Status GenerationTask::Account(size_t index, const pipeline::UnitReport& unit, bool observe) {
  if (observe) governor_->ObserveUnit(*plan_, index, unit.seconds, unit.preparation);
  monitor_.Finish(unit.seconds);
  return monitor_.Check();
}

void GenerationTask::MakeRoom(pipeline::Phase phase) {
  if (model_->fused_cache() == nullptr) return;
  KeepFused(governor_->FusedRoom(*plan_, phase, held_by_others_));
}

void GenerationTask::KeepFused(int64_t bytes) {
  pipeline::FusedCache* const cache = model_->fused_cache();
  if (cache == nullptr) return;
  const int64_t limit = model_->options().fused_cache_bytes;
  for (const std::string& name : cache->Keep(std::min(bytes, limit))) {
    spdlog::info("no longer kept: the transformer with {}, for its memory", name);
  }
}

void GenerationTask::CompareMemory(int64_t measured_bytes) {
  const int64_t projected = expected_bytes_;
  metrics_->ObserveProjection(ProjectionKind::kMemory, static_cast<double>(projected),
                              static_cast<double>(measured_bytes));
  spdlog::debug("memory: projected {} B, measured {} B", projected, measured_bytes);
}

void GenerationTask::SendPreview(const pipeline::UnitReport& unit) {
  if (previews_ == nullptr) return;
  absl::StatusOr<std::optional<v1::Preview>> preview = previews_->After(unit, job_->parameters());
  if (!preview.ok()) {
    // The clip matters more than a look at it beforehand.
    spdlog::warn("no previews: {}", preview.status().ToString());
    report_.add_warnings(absl::StrCat("no previews: ", preview.status().message()));
    previews_.reset();
    return;
  }
  if (!preview->has_value()) return;
  v1::GenerateVideoEvent event;
  *event.mutable_preview() = **std::move(preview);
  sink_->Send(std::move(event));
}

absl::Status GenerationTask::TakeFrames() {
  std::vector<pipeline::FinishedFrames> finished = job_->TakeFrames();
  if (finished.empty()) return absl::OkStatus();
  const absl::Time start = absl::Now();
  Device& device = model_->device();
  clip_->height = static_cast<int>(job_->parameters().height);
  clip_->width = static_cast<int>(job_->parameters().width);
  for (pipeline::FinishedFrames& part : finished) {
    if (kind_.form == MediaKind::Form::kClip) {
      if (encoder_ == nullptr) LTX_RETURN_IF_ERROR(StartEncoder());
      LTX_ASSIGN_OR_RETURN(HostBytes i420, HostBytes::Of(device, std::move(part.bytes.i420)));
      encoder_->Add(std::move(i420));
    }
    LTX_ASSIGN_OR_RETURN(HostBytes rgb, HostBytes::Of(device, std::move(part.bytes.rgb)));
    clip_->parts.push_back(std::move(rgb));
  }
  mux_time_ += absl::Now() - start;
  return absl::OkStatus();
}

absl::Status GenerationTask::StartEncoder() {
  media::Mp4Options options;
  options.width = clip_->width;
  options.height = clip_->height;
  options.frame_rate = request_.frame_rate;
  options.audio_sample_rate =
      job_->parameters().has_audio ? static_cast<int>(model_->sample_rate()) : 0;
  LTX_ASSIGN_OR_RETURN(encoder_, ClipEncoder::Start(ClipPath(), options));
  return absl::OkStatus();
}

absl::Status GenerationTask::TakeClip() {
  Device& device = model_->device();
  {
    LTX_ASSIGN_OR_RETURN(pipeline::GenerationResult result, job_->TakeResult());
    if (result.waveform.defined()) {
      LTX_ASSIGN_OR_RETURN(clip_->waveform, ToFloats(device, result.waveform));
      clip_->sample_rate = static_cast<int>(result.sample_rate);
      clip_->audio_samples = media::AudioSamplesForFrames(result.parameters.num_frames,
                                                          request_.frame_rate, clip_->sample_rate);
    }
    for (const pipeline::PhaseSeconds& phase : result.phases) {
      v1::PhaseTiming* timing = report_.add_timings();
      timing->set_phase(ToWire(phase.phase));
      timing->set_seconds(phase.seconds);
      metrics_->ObservePhaseSeconds(pipeline::PhaseName(phase.phase), phase.seconds);
    }
  }
  FillReport();
  const MemoryLedger::Snapshot memory = MergePeaks(earlier_peaks_, device.ledger().Read());
  AddMemory(memory, report_.mutable_memory());
  CompareMemory(memory.total.peak_bytes);
  job_.reset();
  clip_->judged = true;
  return Verify();
}

absl::Status GenerationTask::Verify() {
  verify::ClipView view;
  view.frames = clip_->Frames();
  view.height = clip_->height;
  view.width = clip_->width;
  view.waveform = clip_->waveform;
  view.audio_channels = clip_->waveform.empty() ? 0 : 2;
  view.audio_sample_rate = clip_->sample_rate;
  LTX_ASSIGN_OR_RETURN(const verify::ClipReport figures,
                       verify::VerifyClip(view, {}, HostThreads(model_->device())));
  *report_.mutable_verifier() = ToWire(figures);
  if (figures.passed) return absl::OkStatus();
  return pipeline::WithDetail(
      absl::InternalError(absl::StrCat("the clip that came out is not presentable: ",
                                       absl::StrJoin(figures.failures, "; "))),
      {std::string(kReasonDegenerateOutput), "", "", ""});
}

void GenerationTask::CountMuxUnits(int64_t num_frames) {
  // Pictures and sounds are written at once.
  const bool in_pieces = kind_.form == MediaKind::Form::kClip;
  mux_units_ = in_pieces
                   ? static_cast<int>((num_frames + kFramesPerMuxUnit - 1) / kFramesPerMuxUnit) + 1
                   : 1;
}

std::string GenerationTask::ClipPath() const {
  return output_path_.empty() ? sink_->ClipPath(kind_.mime_type) : output_path_;
}

absl::StatusOr<bool> GenerationTask::AdvanceMux() {
  const absl::Time start = absl::Now();
  const bool last = mux_done_ + 1 == mux_units_;
  if (last) {
    LTX_RETURN_IF_ERROR(MuxEnd());
  } else {
    LTX_RETURN_IF_ERROR(
        encoder_->WaitFor(std::min((mux_done_ + 1) * kFramesPerMuxUnit, encoder_->added())));
  }
  v1::Progress progress;
  progress.set_phase(v1::PHASE_MUX);
  progress.set_unit(++mux_done_);
  progress.set_units(mux_units_);
  Report(std::move(progress));
  mux_time_ += absl::Now() - start;
  if (!last) return false;
  v1::PhaseTiming* timing = report_.add_timings();
  timing->set_phase(v1::PHASE_MUX);
  timing->set_seconds(absl::ToDoubleSeconds(mux_time_));
  spdlog::debug("mux took {:.4f} s", timing->seconds());
  metrics_->ObservePhaseSeconds("mux", timing->seconds());
  governor_->ObserveUnit(*plan_, plan_->units.size() - 1, timing->seconds(), {});
  report_.set_run_seconds(RunSeconds());
  if (plan_->demand.seconds_known) {
    metrics_->ObserveProjection(ProjectionKind::kTime, plan_->demand.total_seconds(),
                                report_.run_seconds());
    spdlog::debug("time: projected {:.3f} s, measured {:.3f} s", plan_->demand.total_seconds(),
                  report_.run_seconds());
  }
  report_.set_suspended_seconds(absl::ToDoubleSeconds(suspended_));
  LTX_RETURN_IF_ERROR(sink_->Deliver(std::move(report_),
                                     output_path_.empty() ? kind_.mime_type : absl::string_view()));
  return true;
}

absl::Status GenerationTask::MuxEnd() {
  absl::StatusOr<int64_t> bytes;
  switch (kind_.form) {
    case MediaKind::Form::kPicture:
      bytes =
          media::WritePng(ClipPath(), clip_->parts.front().bytes(), clip_->width, clip_->height);
      break;
    case MediaKind::Form::kSound:
      bytes =
          media::WriteWav(ClipPath(), clip_->waveform, clip_->audio_samples, clip_->sample_rate);
      break;
    case MediaKind::Form::kClip:
      bytes = encoder_->Finish(clip_->waveform);
      break;
  }
  LTX_RETURN_IF_ERROR(bytes.status());
  report_.set_media_bytes(*bytes);
  // A PNG has no room for the sound.
  if (kind_.form != MediaKind::Form::kPicture) {
    report_.set_audio_samples(clip_->audio_samples);
    report_.set_audio_sample_rate(clip_->sample_rate);
  }
  return absl::OkStatus();
}

void GenerationTask::Report(v1::Progress of_phase) {
  ++units_done_;
  v1::GenerateVideoEvent event;
  v1::Progress* progress = event.mutable_progress();
  *progress = std::move(of_phase);
  progress->set_units_done(units_done_);
  progress->set_units_total(units_total_);
  const double elapsed = RunSeconds();
  progress->set_elapsed_seconds(elapsed);
  // By the governor's projection once there is one, else by the pace so far. The last unit of a
  // plan is all of encoding.
  const double share = static_cast<double>(mux_done_) / mux_units_;
  progress->set_eta_seconds(
      plan_->demand.seconds_known
          ? std::max(0.0, monitor_.remaining() - share * plan_->units.back().seconds)
          : elapsed / units_done_ * (units_total_ - units_done_));
  sink_->Send(std::move(event));
}

void GenerationTask::SendAdmitted() {
  v1::GenerateVideoEvent event;
  v1::Admitted* admitted = event.mutable_admitted();
  admitted->set_job_id(id_);
  *admitted->mutable_parameters() = ToWire(job_->parameters());
  for (const pipeline::WorkUnit& unit : job_->plan()) {
    if (unit.index != 1) continue;
    v1::PhasePlan* phase = admitted->add_phases();
    phase->set_phase(ToWire(unit.phase));
    phase->set_units(unit.count);
    phase->set_steps(unit.steps);
    for (const pipeline::WorkUnit& other : job_->plan()) {
      if (other.phase != unit.phase) continue;
      phase->set_passes_per_forward(std::max(phase->passes_per_forward(), other.rows));
    }
  }
  v1::PhasePlan* mux = admitted->add_phases();
  mux->set_phase(v1::PHASE_MUX);
  mux->set_units(mux_units_);
  *admitted->mutable_plan() = ToWire(*plan_, governor_->ladder(), Supply());
  sink_->Send(std::move(event));
}

void GenerationTask::FillReport() {
  const pipeline::EffectiveParameters& parameters = job_->parameters();
  report_.set_job_id(id_);
  report_.set_model_name(model_->name());
  report_.set_model_version(model_->version());
  report_.set_device(model_->device().name());
  *report_.mutable_parameters() = ToWire(parameters);
  report_.set_queue_seconds(absl::ToDoubleSeconds(started_ - created_));
  report_.set_output_path(output_path_);
  report_.set_prompt_tokens(static_cast<int32_t>(parameters.prompt_tokens));
  report_.set_dropped_prompt_tokens(static_cast<int32_t>(parameters.dropped_prompt_tokens));
  for (const std::string& warning : parameters.warnings) report_.add_warnings(warning);
  for (const std::string& note : plan_->notes) report_.add_warnings(note);
  if (parameters.dropped_prompt_tokens > 0) {
    report_.add_warnings(absl::StrCat("the prompt is too long: its last ",
                                      parameters.dropped_prompt_tokens, " tokens had no effect"));
  }
}

}  // namespace ltx::server
