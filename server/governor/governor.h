#ifndef LTX_SERVER_GOVERNOR_GOVERNOR_H_
#define LTX_SERVER_GOVERNOR_GOVERNOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/model.h"
#include "engine/pipeline/plan_projector.h"
#include "server/governor/cost_model.h"
#include "server/governor/lease_monitor.h"
#include "server/governor/rung_ladder.h"
#include "server/governor/verdict.h"

namespace ltx::server {

/// A request weighed: what it needs, what it may have, and what follows.
struct GovernorPlan {
  /// As it was weighed: with what was left to the governor decided.
  pipeline::GenerationRequest request;
  /// What was decided and why, for people.
  std::vector<std::string> notes;
  pipeline::EffectiveParameters parameters;
  Demand demand;
  Budgets budgets;
  Verdict verdict;
  /// Units in order of execution, the last one encoding; their costs, and their seconds as
  /// projected.
  std::vector<CostUnit> costs;
  std::vector<PlannedUnit> units;
  /// Memory by phase beyond what is resident, by owner.
  std::vector<pipeline::PhaseMemory> memory;
  /// What the device may prepare ahead.
  std::vector<AttentionSize> new_attentions;
};

/// Knows what requests cost on this model and device, and decides who may. Thread-safe.
class Governor {
 public:
  struct Options {
    RungLadder ladder;
    /// What this process may use of the device, weights included; 0: no limit.
    int64_t device_bytes = 0;
  };

  /// `model`, loaded from `files` and idle, must outlive the governor.
  static absl::StatusOr<std::unique_ptr<Governor>> Create(const pipeline::Model* model,
                                                          const checkpoint::ModelSet& files,
                                                          Options options);

  const RungLadder& ladder() const { return options_.ladder; }
  int64_t device_bytes() const { return options_.device_bytes; }
  /// Ledger bytes that are there whether a job runs or not.
  int64_t ResidentBytes() const;
  /// Ledger bytes that jobs hold at the moment, transformers with an adapter included.
  int64_t HeldBytes() const;
  /// Of those, what is theirs alone: a transformer may also be kept for the next job.
  int64_t ActivationBytes() const;

  /// How many bytes of transformers with an adapter may be on the device while a unit of `phase`
  /// runs, its own included, beside `activation_bytes` of suspended jobs.
  int64_t FusedRoom(const GovernorPlan& plan, pipeline::Phase phase,
                    int64_t activation_bytes) const;
  /// What the ledger should show at the peak of `phase` with `fused_bytes` of such transformers.
  int64_t ExpectedBytes(const GovernorPlan& plan, pipeline::Phase phase, int64_t fused_bytes) const;

  /// Weighs a valid request. `supply` tells of the queue; device and held bytes are filled in here.
  /// A refusal is a plan, too; an error is a request that the model cannot run. Guidance passes
  /// that would not fit as one batch follow each other, unless the request says which it wants.
  absl::StatusOr<GovernorPlan> Weigh(const pipeline::GenerationRequest& request, const Lease& lease,
                                     Supply supply);

  /// The rungs as requests of this kind, weighed; rungs where the request makes no sense are left
  /// out.
  std::vector<GovernorPlan> WeighRungs(const pipeline::GenerationRequest& request,
                                       const Lease& lease, const Supply& supply);

  /// Watches a job that runs by `plan`.
  static LeaseMonitor Monitor(const GovernorPlan& plan);

  /// Unit `index` of a plan took so long, and prepared what it did, which need not be what was
  /// planned: other jobs may have come before, or recordings gone.
  void ObserveUnit(const GovernorPlan& plan, size_t index, double seconds,
                   const Preparation& prepared);

  /// What was learned, for the next process; see CostModel.
  std::string CostsToJson() const;
  absl::Status CostsFromJson(absl::string_view text);
  /// True if every kind of unit of `plan` has been measured.
  bool KnowsCosts(const GovernorPlan& plan) const;

 private:
  Governor(const pipeline::Model* model, Options options);
  absl::StatusOr<GovernorPlan> Project(const pipeline::GenerationRequest& request);
  /// Project() and Decide() within the budgets of `rung`, which may be null.
  absl::StatusOr<GovernorPlan> WeighAs(const pipeline::GenerationRequest& request, const Rung* rung,
                                       const Lease& lease, const Supply& supply);
  /// The same, with what the request leaves open decided so that it fits, if that is possible.
  absl::StatusOr<GovernorPlan> Fit(const pipeline::GenerationRequest& request, const Rung* rung,
                                   const Lease& lease, const Supply& supply);
  absl::StatusOr<GovernorPlan> WeighRung(const Rung& rung,
                                         const pipeline::GenerationRequest& request,
                                         const Lease& lease, const Supply& supply);
  Supply Complete(Supply supply) const;

  const pipeline::Model* const model_;
  const Options options_;
  const MemoryLedger::Snapshot idle_;
  std::unique_ptr<pipeline::PlanProjector> projector_;
  mutable absl::Mutex mutex_;
  CostModel costs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ltx::server

#endif  // LTX_SERVER_GOVERNOR_GOVERNOR_H_
