#include "server/calibration.h"

#include <unistd.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"
#include "server/calibration_requests.h"
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
  absl::Status DeliverPartial(v1::PartialResult /*partial*/,
                              absl::string_view /*mime_type*/) override {
    return absl::UnimplementedError("a calibration keeps nothing");
  }

 private:
  std::string Stem() const { return folder_ + "/calibration"; }
  const std::string folder_;
};

/// A prompt that was seen before may be kept, and then costs nothing: each run has a number of its
/// own. Two runs in a row have as many tokens, so that the second tells what a length of prompt
/// costs, and the first what its first use does.
constexpr const char* kPrompts[] = {
    "a red circle moves from left to right on a black background, a low hum",
    "a white triangle bounces on a dark blue background, short beeps, then a rising tone",
};
std::string PromptOf(int run) {
  return absl::StrFormat("%s %03d", kPrompts[run / 2 % std::size(kPrompts)], run);
}

/// Rounds over all sizes, one clip of each in a round, two in the first: more than a median of the
/// units that a clip has one of is worth.
constexpr int kRounds = 7;

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
                       /*output_path=*/"", /*keep_partial_results=*/false,
                       /*preview_every_steps=*/0, /*projection=*/nullptr},
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
  const absl::Time end = start + budget;
  const std::vector<pipeline::GenerationRequest> sizes = CalibrationRequests(
      model.DefaultRequest(), model.limits().min_frames, governor->ladder(),
      [&](const pipeline::GenerationRequest& request) { return model.Validate(request); });
  int clips = 0;
  // Rounds over all sizes, so that what the machine does meanwhile meets them all alike. What
  // does not fit into the time that is left is not begun.
  const auto run = [&](pipeline::GenerationRequest request) -> absl::StatusOr<bool> {
    request.prompt = PromptOf(clips);
    LTX_ASSIGN_OR_RETURN(const bool finished, RunOnce(model, governor, request, scratch_dir, end));
    clips += finished ? 1 : 0;
    // As on an idle server.
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = model.Improve();
    LTX_RETURN_IF_ERROR(more.status());
    return finished;
  };
  std::vector<int> runs(sizes.size(), 0);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      // A unit counts from its second time on.
      const int due = round == 0 ? 2 : round + 2;
      for (; runs[i] < due; ++runs[i]) {
        LTX_ASSIGN_OR_RETURN(const GovernorPlan plan, governor->Weigh(sizes[i], {}, {}));
        const double left = absl::ToDoubleSeconds(end - absl::Now());
        const double second = runs[i] == 0 ? plan.demand.seconds : 0;
        if (plan.demand.seconds_known && plan.demand.total_seconds() + second > left) break;
        LTX_ASSIGN_OR_RETURN(const bool finished, run(sizes[i]));
        if (!finished) {
          spdlog::info("calibration: ends after {} clips, its time is over", clips);
          return absl::OkStatus();
        }
      }
    }
  }
  std::vector<std::string> made;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (runs[i] == 0) continue;
    made.push_back(
        absl::StrCat(runs[i], " of ",
                     Geometry{sizes[i].width, sizes[i].height, sizes[i].num_frames}.ToString()));
  }
  spdlog::info("calibration: {} clips in {:.2f} s: {}", clips,
               absl::ToDoubleSeconds(absl::Now() - start), absl::StrJoin(made, ", "));
  return absl::OkStatus();
}

}  // namespace ltx::server
