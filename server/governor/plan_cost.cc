#include "server/governor/plan_cost.h"

namespace ltx::server {
namespace {

constexpr double kGiga = 1e-9;
constexpr double kMega = 1e-6;
constexpr double kKilo = 1e-3;

}  // namespace

CostKind CostKindOf(pipeline::Phase phase) {
  switch (phase) {
    case pipeline::Phase::kEnhance:
      return CostKind::kEnhance;
    case pipeline::Phase::kText:
      return CostKind::kText;
    case pipeline::Phase::kFuse:
      return CostKind::kFuse;
    case pipeline::Phase::kStage1:
    case pipeline::Phase::kStage2:
      return CostKind::kForward;
    case pipeline::Phase::kUpsample:
      return CostKind::kUpsample;
    case pipeline::Phase::kVideoDecode:
      return CostKind::kVideoDecode;
    case pipeline::Phase::kAudioDecode:
      return CostKind::kAudioDecode;
  }
  return CostKind::kForward;
}

CostUnit CostOf(const pipeline::UnitProjection& unit) {
  CostUnit cost;
  cost.kind = CostKindOf(unit.unit.phase);
  cost[CostTerm::kUnit] = 1;
  // Only stages prepare something that later units use.
  cost[CostTerm::kStart] = cost.kind == CostKind::kForward && unit.first_of_phase ? 1 : 0;
  cost[CostTerm::kProducts] = unit.work.products * kGiga;
  cost[CostTerm::kAttention] = unit.work.attention * kGiga;
  cost[CostTerm::kBytes] = unit.work.bytes * kGiga;
  cost[CostTerm::kNormals] = static_cast<double>(unit.drawn) * kMega;
  cost.preparation = unit.preparation;
  return cost;
}

CostUnit MuxCost(int64_t width, int64_t height, int64_t num_frames, int64_t audio_samples) {
  CostUnit cost;
  cost.kind = CostKind::kMux;
  cost[CostTerm::kUnit] = 1;
  // Three colours and two channels in f32.
  const double pixels = static_cast<double>(width) * static_cast<double>(height * num_frames);
  cost[CostTerm::kBytes] = (pixels * 12 + static_cast<double>(audio_samples) * 8) * kGiga;
  cost[CostTerm::kFrames] = static_cast<double>(num_frames) * kKilo;
  return cost;
}

}  // namespace ltx::server
