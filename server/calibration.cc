#include "server/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "engine/pipeline/recipe.h"
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
  absl::Status DeliverPartial(v1::PartialResult /*partial*/,
                              absl::string_view /*mime_type*/) override {
    return absl::UnimplementedError("a calibration keeps nothing");
  }

 private:
  std::string Stem() const { return folder_ + "/calibration"; }
  const std::string folder_;
};

/// The shortest clip of the smallest rung, the model's default size, a quarter of its length at
/// five areas, and then the rungs around it, smaller ones first, from 1 / kLeastShare of its pixels
/// to kMostVolume times as many. What belongs to a unit, what grows with area and what with length
/// show at sizes that are far apart. What a new size prepares shows at the cost of short clips, and
/// takes several: the first ones of a process load code that later ones find there.
std::vector<pipeline::GenerationRequest> Sizes(const pipeline::Model& model,
                                               const RungLadder& ladder) {
  /// Beyond it a clip costs more than it tells: time grows in proportion, or faster.
  constexpr double kMostVolume = 4;
  /// Below it, the shortest clip of all tells as much.
  constexpr double kLeastShare = 8;
  std::vector<pipeline::GenerationRequest> requests;
  const auto add = [&](const Geometry& geometry) {
    pipeline::GenerationRequest request = model.DefaultRequest();
    request.width = geometry.width;
    request.height = geometry.height;
    request.num_frames = geometry.num_frames;
    const bool there = std::any_of(requests.begin(), requests.end(), [&](const auto& other) {
      return other.width == request.width && other.height == request.height &&
             other.num_frames == request.num_frames;
    });
    if (!there && model.Validate(request).ok()) requests.push_back(std::move(request));
  };
  const pipeline::RequestLimits& limits = model.limits();
  const pipeline::GenerationRequest request = model.DefaultRequest();
  const Geometry defaults = {request.width, request.height, request.num_frames};
  const int64_t shortest = (limits.min_frames + 6) / 8 * 8 + 1;
  if (!ladder.rungs().empty()) {
    Geometry smallest = ladder.rungs().front().geometry;
    smallest.num_frames = shortest;
    add(smallest);
  }
  add(defaults);
  const int64_t quarter = std::max(shortest, (defaults.num_frames - 1) / 32 * 8 + 1);
  const int64_t multiple = pipeline::SizeMultiple(request.recipe);
  for (const int64_t fourths : {4, 2, 6, 3, 5}) {
    add({defaults.width * fourths / 4 / multiple * multiple,
         defaults.height * fourths / 4 / multiple * multiple, quarter});
  }
  for (const Rung& rung : ladder.rungs()) {
    const double times = rung.geometry.volume() / defaults.volume();
    if (times * kLeastShare >= 1 && times <= kMostVolume) add(rung.geometry);
  }
  return requests;
}

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
  const std::vector<pipeline::GenerationRequest> sizes = Sizes(model, governor->ladder());
  int clips = 0;
  // Rounds over all sizes, so that what the machine does meanwhile meets them all alike. What
  // does not fit into the time that is left is not begun.
  const auto run = [&](pipeline::GenerationRequest request) -> absl::StatusOr<bool> {
    request.prompt = PromptOf(clips);
    LTX_ASSIGN_OR_RETURN(const bool finished, RunOnce(model, governor, request, scratch_dir, end));
    clips += finished ? 1 : 0;
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
