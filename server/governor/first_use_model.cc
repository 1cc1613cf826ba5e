#include "server/governor/first_use_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/governor/least_squares.h"
#include "server/governor/median.h"

namespace ltx::server {
namespace {

/// Of one kind. A new size of clip makes two of forwards and, where frames are decoded in parts, a
/// dozen of the decoder; some ten sizes say what things cost now, and a fit through them takes well
/// below a millisecond.
constexpr size_t kPreparedSamples = 24;
constexpr size_t kRecordedSamples = 24;
/// Of one kind; a process makes one.
constexpr size_t kFirstSamples = 5;
/// Misses below it are noise of the clock, in seconds.
constexpr double kSmallestMiss = 1e-4;
/// A forward that is so much slower when issued is bound by the host.
constexpr double kHostBound = 1.1;
/// Numbers of a sample as text.
constexpr size_t kNumberCount = 10;
/// More of anything in one unit is no measurement.
constexpr double kMostCount = 1e6;
constexpr double kMostWork = 1e18;

constexpr double kGiga = 1e-9;

}  // namespace

std::vector<double> FirstUseModel::TermsOf(const Novelty& novelty) {
  std::vector<double> terms(kPriceCount);
  terms[0] = static_cast<double>(novelty.preparation.products);
  terms[1] = novelty.preparation.product_work * kGiga;
  terms[2] = static_cast<double>(novelty.preparation.attentions);
  terms[3] = static_cast<double>(novelty.preparation.recorded);
  if (novelty.first_of_computation) terms[4 + static_cast<int>(novelty.kind)] = 1;
  return terms;
}

double FirstUseModel::IssueSeconds(const Novelty& novelty, double steady) const {
  return novelty.preparation.issued > 0 ? std::max(0.0, issue_seconds_ - steady) : 0.0;
}

double FirstUseModel::PreparationSeconds(const Novelty& novelty, double steady) const {
  const std::vector<double> terms = TermsOf(novelty);
  double seconds = IssueSeconds(novelty, steady);
  for (int i = 0; i < kPriceCount; ++i) seconds += prices_[i] * terms[i];
  return seconds;
}

double FirstUseModel::Predict(const Novelty& novelty, double steady) const {
  return PreparationSeconds(novelty, steady) +
         (novelty.first_of_kind ? start_seconds_[static_cast<int>(novelty.kind)] : 0.0);
}

void FirstUseModel::Observe(const Novelty& novelty, double steady, double extra) {
  Add({novelty, steady, extra});
  Fit();
}

void FirstUseModel::Add(const Sample& sample) {
  const Novelty& novelty = sample.novelty;
  std::deque<Sample>* samples = &recorded_;
  size_t most = kRecordedSamples;
  if (novelty.first_of_kind) {
    samples = &first_[static_cast<int>(novelty.kind)];
    most = kFirstSamples;
  } else if (novelty.first_of_computation || novelty.preparation.products > 0 ||
             novelty.preparation.attentions > 0) {
    samples = &prepared_[static_cast<int>(novelty.kind)];
    most = kPreparedSamples;
  }
  samples->push_back(sample);
  if (samples->size() > most) samples->pop_front();
}

void FirstUseModel::Fit() {
  std::vector<double> issued;
  for (const Sample& sample : recorded_) {
    const double seconds = sample.steady + sample.extra;
    if (sample.novelty.preparation.issued > 0 && seconds > kHostBound * sample.steady) {
      issued.push_back(seconds);
    }
  }
  issue_seconds_ = issued.empty() ? 0 : Median(issued);

  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  const auto add = [&](const std::deque<Sample>& samples) {
    for (const Sample& sample : samples) {
      rows.push_back(TermsOf(sample.novelty));
      values.push_back(sample.extra - IssueSeconds(sample.novelty, sample.steady));
    }
  };
  for (const std::deque<Sample>& samples : prepared_) add(samples);
  add(recorded_);
  prices_.assign(kPriceCount, 0.0);
  if (!rows.empty()) prices_ = NonNegativeLeastAbsolutes(rows, values, kSmallestMiss);

  for (int kind = 0; kind < kCostKindCount; ++kind) {
    std::vector<double> rest;
    for (const Sample& sample : first_[kind]) {
      rest.push_back(sample.extra - PreparationSeconds(sample.novelty, sample.steady));
    }
    start_seconds_[kind] = rest.empty() ? 0 : std::max(0.0, Median(rest));
  }
}

std::vector<std::vector<double>> FirstUseModel::ToNumbers() const {
  std::vector<std::vector<double>> numbers;
  const auto append = [&numbers](const std::deque<Sample>& samples) {
    for (const Sample& sample : samples) {
      const Novelty& novelty = sample.novelty;
      const Preparation& preparation = novelty.preparation;
      numbers.push_back({static_cast<double>(novelty.kind), novelty.first_of_kind ? 1.0 : 0.0,
                         novelty.first_of_computation ? 1.0 : 0.0,
                         static_cast<double>(preparation.products), preparation.product_work,
                         static_cast<double>(preparation.attentions),
                         static_cast<double>(preparation.issued),
                         static_cast<double>(preparation.recorded), sample.steady, sample.extra});
    }
  };
  for (const std::deque<Sample>& samples : prepared_) append(samples);
  append(recorded_);
  for (const std::deque<Sample>& samples : first_) append(samples);
  return numbers;
}

absl::Status FirstUseModel::FromNumbers(const std::vector<std::vector<double>>& numbers) {
  const double most[kNumberCount] = {
      kCostKindCount - 1, 1,          1,          kMostCount,       kMostWork,
      kMostCount,         kMostCount, kMostCount, kMostUnitSeconds, kMostUnitSeconds};
  FirstUseModel read;
  for (const std::vector<double>& sample : numbers) {
    bool legal = sample.size() == kNumberCount;
    for (size_t i = 0; legal && i < kNumberCount; ++i) {
      const double least = i + 1 == kNumberCount ? -kMostUnitSeconds : 0.0;
      const bool whole = i == 4 || i >= 8 || sample[i] == std::floor(sample[i]);
      legal = sample[i] >= least && sample[i] <= most[i] && whole;
    }
    if (!legal) return absl::InvalidArgumentError("a first use that was never measured");
    Sample made;
    made.novelty.kind = static_cast<CostKind>(static_cast<int>(sample[0]));
    made.novelty.first_of_kind = sample[1] != 0;
    made.novelty.first_of_computation = sample[2] != 0;
    made.novelty.preparation = {static_cast<int64_t>(sample[3]), sample[4],
                                static_cast<int64_t>(sample[5]), static_cast<int64_t>(sample[6]),
                                static_cast<int64_t>(sample[7])};
    made.steady = sample[8];
    made.extra = sample[9];
    read.Add(made);
  }
  read.Fit();
  *this = std::move(read);
  return absl::OkStatus();
}

}  // namespace ltx::server
