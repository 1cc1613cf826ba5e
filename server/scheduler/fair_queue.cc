#include "server/scheduler/fair_queue.h"

#include <algorithm>
#include <queue>

namespace ltx::server {

struct FairQueue::Tenant {
  std::string name;
  double weight = 1;
  double virtual_time = 0;
  int running = 0;
  /// By arrival.
  std::array<std::map<uint64_t, WaitingJob>, kJobClassCount> waiting;

  bool active() const { return running > 0 || !waiting[0].empty() || !waiting[1].empty(); }
};

FairQueue::FairQueue(std::map<std::string, double> weights) : weights_(std::move(weights)) {}

FairQueue::~FairQueue() = default;

FairQueue::Tenant* FairQueue::Find(const std::string& name) {
  std::unique_ptr<Tenant>& slot = tenants_[name];
  if (slot == nullptr) {
    slot = std::make_unique<Tenant>();
    slot->name = name;
    const auto weight = weights_.find(name);
    if (weight != weights_.end()) slot->weight = weight->second;
    slot->virtual_time = virtual_time_;
    Link(slot.get());
  }
  return slot.get();
}

FairQueue::Place FairQueue::PlaceOf(Tenant* tenant, int job_class) {
  return {tenant->virtual_time, tenant->waiting[job_class].begin()->first, tenant};
}

void FairQueue::Unlink(Tenant* tenant) {
  for (int c = 0; c < kJobClassCount; ++c) {
    if (!tenant->waiting[c].empty()) order_[c].erase(PlaceOf(tenant, c));
  }
  (tenant->active() ? active_ : paused_).erase({tenant->virtual_time, tenant});
}

void FairQueue::Link(Tenant* tenant) {
  for (int c = 0; c < kJobClassCount; ++c) {
    if (!tenant->waiting[c].empty()) order_[c].insert(PlaceOf(tenant, c));
  }
  (tenant->active() ? active_ : paused_).insert({tenant->virtual_time, tenant});
}

void FairQueue::Settle() {
  if (active_.empty()) {
    // Nobody was kept waiting by anybody's debt: all start equal.
    paused_.clear();
    tenants_.clear();
    virtual_time_ = 0;
    return;
  }
  virtual_time_ = std::max(virtual_time_, active_.begin()->first);
  while (!paused_.empty() && paused_.begin()->first <= virtual_time_) {
    Tenant* const overtaken = paused_.begin()->second;
    paused_.erase(paused_.begin());
    tenants_.erase(std::string(overtaken->name));
  }
}

void FairQueue::Push(WaitingJob job) {
  const int c = static_cast<int>(job.job_class);
  const uint64_t arrival = next_arrival_++;
  Tenant* const tenant = Find(job.tenant);
  index_[job.id] = {tenant, c, arrival};
  Unlink(tenant);
  tenant->waiting[c].emplace(arrival, std::move(job));
  Link(tenant);
  ++size_[c];
  Settle();
}

const WaitingJob* FairQueue::Head() const {
  for (int c = 0; c < kJobClassCount; ++c) {
    const WaitingJob* const head = Head(static_cast<JobClass>(c));
    if (head != nullptr) return head;
  }
  return nullptr;
}

const WaitingJob* FairQueue::Head(JobClass job_class) const {
  const int c = static_cast<int>(job_class);
  if (order_[c].empty()) return nullptr;
  const auto& [virtual_time, arrival, tenant] = *order_[c].begin();
  return &tenant->waiting[c].at(arrival);
}

WaitingJob FairQueue::Pop(JobClass job_class) {
  const auto [tenant, c, arrival] = index_.at(Head(job_class)->id);
  Unlink(tenant);
  WaitingJob job = std::move(tenant->waiting[c].extract(arrival).mapped());
  ++tenant->running;
  Link(tenant);
  --size_[c];
  index_.erase(job.id);
  return job;
}

bool FairQueue::Remove(const std::string& id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return false;
  const auto [tenant, c, arrival] = found->second;
  index_.erase(found);
  Unlink(tenant);
  tenant->waiting[c].erase(arrival);
  Link(tenant);
  --size_[c];
  Settle();
  return true;
}

void FairQueue::Charge(const std::string& tenant_name, double seconds) {
  Tenant* const tenant = Find(tenant_name);
  Unlink(tenant);
  tenant->virtual_time += std::max(seconds, 0.0) / tenant->weight;
  Link(tenant);
  Settle();
}

void FairQueue::Release(const std::string& tenant_name) {
  Tenant* const tenant = Find(tenant_name);
  Unlink(tenant);
  tenant->running = std::max(tenant->running - 1, 0);
  Link(tenant);
  Settle();
}

std::vector<const WaitingJob*> FairQueue::Order(double default_seconds) const {
  std::vector<const WaitingJob*> order;
  order.reserve(size());
  absl::flat_hash_map<const Tenant*, double> virtual_times;
  for (const auto& [name, tenant] : tenants_) {
    virtual_times[tenant.get()] = tenant->virtual_time;
  }
  using Next = std::map<uint64_t, WaitingJob>::const_iterator;
  using Step = std::tuple<double, uint64_t, const Tenant*, Next>;
  const auto later = [](const Step& a, const Step& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) > std::tie(std::get<0>(b), std::get<1>(b));
  };
  for (int c = 0; c < kJobClassCount; ++c) {
    std::priority_queue<Step, std::vector<Step>, decltype(later)> steps(later);
    const auto add = [&](const Tenant* tenant, Next next) {
      if (next == tenant->waiting[c].end()) return;
      steps.emplace(virtual_times[tenant], next->first, tenant, next);
    };
    for (const auto& [virtual_time, arrival, tenant] : order_[c]) {
      add(tenant, tenant->waiting[c].begin());
    }
    while (!steps.empty()) {
      const auto [virtual_time, arrival, tenant, next] = steps.top();
      steps.pop();
      const WaitingJob& job = next->second;
      order.push_back(&job);
      const double seconds = job.expected_seconds > 0 ? job.expected_seconds : default_seconds;
      virtual_times[tenant] += seconds / tenant->weight;
      add(tenant, std::next(next));
    }
  }
  return order;
}

}  // namespace ltx::server
