#ifndef LTX_SERVER_SCHEDULER_FAIR_QUEUE_H_
#define LTX_SERVER_SCHEDULER_FAIR_QUEUE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/scheduler/job_class.h"

namespace ltx::server {

struct WaitingJob {
  std::string id;
  std::string tenant;
  JobClass job_class = JobClass::kInteractive;
  /// Device time the job is thought to need; 0 if nobody knows. Decides nothing, see Order().
  double expected_seconds = 0;
};

/// The order of waiting jobs: by class; inside a class shared among tenants in proportion to their
/// weights; inside a tenant first come, first served. Plain arithmetic without clock or threads.
///
/// Shares are those of device time. Every tenant has a virtual time, which advances by
/// seconds / weight with what its jobs used (Charge()); the tenant that is behind goes next. One
/// that comes back after a pause starts where the others are, so that nobody saves up, and nobody
/// loses a debt by pausing while others wait. This is fair queueing by measured service, as in
/// Linux's CFS; no estimate of a job's length enters.
class FairQueue {
 public:
  /// Tenants without an entry have weight 1. Weights must be positive.
  explicit FairQueue(std::map<std::string, double> weights = {});
  ~FairQueue();
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  /// The id must not be in the queue.
  void Push(WaitingJob job);
  /// The job that goes next, or null. Valid until the next change.
  const WaitingJob* Head() const;
  /// The same among the jobs of one class.
  const WaitingJob* Head(JobClass job_class) const;
  /// Takes the head of the class out; its tenant counts as running until Release(). The class must
  /// not be empty.
  WaitingJob Pop(JobClass job_class);
  /// Takes a waiting job out; false if it is not there.
  bool Remove(const std::string& id);

  /// `seconds` of device time went to a job of the tenant that was popped and is not released yet.
  void Charge(const std::string& tenant, double seconds);
  /// A popped job of the tenant is done with the device.
  void Release(const std::string& tenant);

  int size() const { return size_[0] + size_[1]; }
  int size(JobClass job_class) const { return size_[static_cast<int>(job_class)]; }
  bool empty() const { return size() == 0; }

  /// Every waiting job in the order in which they will go if each uses its expected seconds
  /// (`default_seconds` where unknown) and nothing new comes. Pointers are valid until the next
  /// change. O(n log tenants).
  std::vector<const WaitingJob*> Order(double default_seconds) const;

  /// Tenants that are remembered: those with waiting or running jobs, and those that paused in
  /// debt.
  int tenants() const { return static_cast<int>(tenants_.size()); }

 private:
  struct Tenant;
  /// Virtual time, arrival of the tenant's first waiting job of the class, tenant.
  using Place = std::tuple<double, uint64_t, Tenant*>;

  Tenant* Find(const std::string& name);
  static Place PlaceOf(Tenant* tenant, int job_class);
  /// Take the tenant out of, and put it back into, the ordered sets around a change.
  void Unlink(Tenant* tenant);
  void Link(Tenant* tenant);
  /// After a change: moves the virtual time on and forgets tenants that it has overtaken.
  void Settle();

  const std::map<std::string, double> weights_;
  std::map<std::string, std::unique_ptr<Tenant>> tenants_;
  absl::flat_hash_map<std::string, std::tuple<Tenant*, int, uint64_t>> index_;
  std::array<std::set<Place>, kJobClassCount> order_;
  /// By virtual time: tenants with waiting or running jobs, and the others.
  std::set<std::pair<double, Tenant*>> active_;
  std::set<std::pair<double, Tenant*>> paused_;
  std::array<int, kJobClassCount> size_{};
  uint64_t next_arrival_ = 0;
  double virtual_time_ = 0;
};

}  // namespace ltx::server

#endif  // LTX_SERVER_SCHEDULER_FAIR_QUEUE_H_
