#include "server/calibration.h"

#include <unistd.h>

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"
#include "server/generation_task.h"
#include "server/jobs/generation_sink.h"
#include "server/metrics/server_metrics.h"
#include "spdlog/spdlog.h"

namespace ltx::server {
namespace {

/// Takes a clip and throws it away.
class DiscardingSink final : public GenerationSink {
 public:
  explicit DiscardingSink(std::string folder) : folder_(std::move(folder)) {}
  ~DiscardingSink() override {
    for (const char* ending : {".mp4", ".png", ".wav"}) unlink((Stem() + ending).c_str());
  }
  void Enter(v1::Phase /*phase*/) override {}
  void Send(v1::GenerateVideoEvent /*event*/) override {}
  std::string ClipPath(absl::string_view mime_type) const override {
    return Stem() + (mime_type == "image/png"   ? ".png"
                     : mime_type == "audio/wav" ? ".wav"
                                                : ".mp4");
  }
  absl::Status Deliver(v1::GenerationReport /*report*/, absl::string_view /*mime_type*/) override {
    return absl::OkStatus();
  }

 private:
  std::string Stem() const { return folder_ + "/calibration"; }
  const std::string folder_;
};

/// The smallest rung, and that of the model's default size: far enough apart to tell what belongs
/// to a unit from what grows with the clip.
std::vector<pipeline::GenerationRequest> Sizes(const pipeline::Model& model,
                                               const RungLadder& ladder) {
  std::vector<pipeline::GenerationRequest> requests;
  const auto add = [&](const Geometry& geometry) {
    pipeline::GenerationRequest request = model.DefaultRequest();
    request.width = geometry.width;
    request.height = geometry.height;
    request.num_frames = geometry.num_frames;
    if (model.Validate(request).ok()) requests.push_back(std::move(request));
  };
  const pipeline::RequestLimits& limits = model.limits();
  const pipeline::GenerationRequest defaults = model.DefaultRequest();
  // The shortest clip of the smallest rung.
  if (!ladder.rungs().empty()) {
    Geometry smallest = ladder.rungs().front().geometry;
    smallest.num_frames = (limits.min_frames + 6) / 8 * 8 + 1;
    add(smallest);
  }
  add({defaults.width, defaults.height, defaults.num_frames});
  return requests;
}

/// One for each run: a prompt that was seen before may be kept, and then costs nothing.
constexpr const char* kPrompts[] = {
    "a red circle moves from left to right on a black background, a low hum",
    "a blue square moves up on a brown background, a rising tone",
    "a green ring moves down on a gray background, a high whistle",
    "a white triangle bounces on a dark blue background, short beeps",
};

/// False: the time is over.
absl::StatusOr<bool> RunOnce(const pipeline::Model& model, Governor* governor,
                             const pipeline::GenerationRequest& request,
                             const std::string& scratch_dir, absl::Time end) {
  LTX_ASSIGN_OR_RETURN(GovernorPlan weighed, governor->Weigh(request, {}, {}));
  // Nobody's lease: it is the budget of the calibration that ends it.
  weighed.budgets.seconds = {};
  // What calibration takes is nobody's request.
  ServerMetrics metrics;
  GenerationTask task("calibration", &model, governor,
                      {request, std::make_shared<const GovernorPlan>(std::move(weighed)),
                       /*output_path=*/"", /*preview_every_steps=*/0, /*projection=*/nullptr},
                      std::make_shared<DiscardingSink>(scratch_dir), &metrics);
  LTX_RETURN_IF_ERROR(task.Start(0));
  while (absl::Now() < end) {
    LTX_ASSIGN_OR_RETURN(const UnitOutcome outcome, task.AdvanceUnit());
    if (outcome.done) return true;
  }
  return false;
}

}  // namespace

absl::Status Calibrate(const pipeline::Model& model, Governor* governor,
                       const std::string& scratch_dir, absl::Duration budget) {
  const absl::Time start = absl::Now();
  int clips = 0;
  std::vector<pipeline::GenerationRequest> sizes = Sizes(model, governor->ladder());
  for (pipeline::GenerationRequest& request : sizes) {
    for (int run = 0; run < 2; ++run) {
      request.prompt = kPrompts[clips % std::size(kPrompts)];
      LTX_ASSIGN_OR_RETURN(const bool finished,
                           RunOnce(model, governor, request, scratch_dir, start + budget));
      if (!finished) {
        spdlog::info("calibration: ends after {} clips, its time is over", clips);
        return absl::OkStatus();
      }
      ++clips;
    }
  }
  spdlog::info("calibration: {} clips in {:.2f} s", clips,
               absl::ToDoubleSeconds(absl::Now() - start));
  return absl::OkStatus();
}

}  // namespace ltx::server
