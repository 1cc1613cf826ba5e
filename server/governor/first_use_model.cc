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
/// Numbers of a sample as text.
constexpr size_t kNumberCount = 6;
/// More of anything in one unit is no measurement.
constexpr double kMostCount = 1e6;

}  // namespace

std::vector<double> FirstUseModel::TermsOf(const Novelty& novelty) {
  std::vector<double> terms(kPriceCount);
  terms[0] = static_cast<double>(novelty.preparation.attentions);
  terms[1] = static_cast<double>(novelty.preparation.recorded);
  if (novelty.first_of_computation) terms[2 + static_cast<int>(novelty.kind)] = 1;
  return terms;
}

double FirstUseModel::PreparationSeconds(const Novelty& novelty) const {
  const std::vector<double> terms = TermsOf(novelty);
  double seconds = 0;
  for (int i = 0; i < kPriceCount; ++i) seconds += prices_[i] * terms[i];
  return seconds;
}

double FirstUseModel::Predict(const Novelty& novelty) const {
  return PreparationSeconds(novelty) +
         (novelty.first_of_kind ? start_seconds_[static_cast<int>(novelty.kind)] : 0.0);
}

void FirstUseModel::Observe(const Novelty& novelty, double extra) {
  Add({novelty, extra});
  Fit();
}

void FirstUseModel::Add(const Sample& sample) {
  const Novelty& novelty = sample.novelty;
  std::deque<Sample>* samples = &recorded_;
  size_t most = kRecordedSamples;
  if (novelty.first_of_kind) {
    samples = &first_[static_cast<int>(novelty.kind)];
    most = kFirstSamples;
  } else if (novelty.first_of_computation || novelty.preparation.attentions > 0) {
    samples = &prepared_[static_cast<int>(novelty.kind)];
    most = kPreparedSamples;
  }
  samples->push_back(sample);
  if (samples->size() > most) samples->pop_front();
}

void FirstUseModel::Fit() {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  const auto add = [&](const std::deque<Sample>& samples) {
    for (const Sample& sample : samples) {
      rows.push_back(TermsOf(sample.novelty));
      values.push_back(sample.extra);
    }
  };
  for (const std::deque<Sample>& samples : prepared_) add(samples);
  add(recorded_);
  prices_.assign(kPriceCount, 0.0);
  if (!rows.empty()) prices_ = NonNegativeLeastAbsolutes(rows, values, kSmallestMiss);

  for (int kind = 0; kind < kCostKindCount; ++kind) {
    std::vector<double> rest;
    for (const Sample& sample : first_[kind]) {
      rest.push_back(sample.extra - PreparationSeconds(sample.novelty));
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
                         static_cast<double>(preparation.attentions),
                         static_cast<double>(preparation.recorded), sample.extra});
    }
  };
  for (const std::deque<Sample>& samples : prepared_) append(samples);
  append(recorded_);
  for (const std::deque<Sample>& samples : first_) append(samples);
  return numbers;
}

absl::Status FirstUseModel::FromNumbers(const std::vector<std::vector<double>>& numbers) {
  const double most[kNumberCount] = {kCostKindCount - 1, 1,          1,
                                     kMostCount,         kMostCount, kMostUnitSeconds};
  FirstUseModel read;
  for (const std::vector<double>& sample : numbers) {
    bool legal = sample.size() == kNumberCount;
    for (size_t i = 0; legal && i < kNumberCount; ++i) {
      const bool is_count = i + 1 < kNumberCount;
      const double least = is_count ? 0.0 : -kMostUnitSeconds;
      const bool whole = !is_count || sample[i] == std::floor(sample[i]);
      legal = sample[i] >= least && sample[i] <= most[i] && whole;
    }
    if (!legal) return absl::InvalidArgumentError("a first use that was never measured");
    Sample made;
    made.novelty.kind = static_cast<CostKind>(static_cast<int>(sample[0]));
    made.novelty.first_of_kind = sample[1] != 0;
    made.novelty.first_of_computation = sample[2] != 0;
    made.novelty.preparation = {static_cast<int64_t>(sample[3]), static_cast<int64_t>(sample[4])};
    made.extra = sample[5];
    read.Add(made);
  }
  read.Fit();
  *this = std::move(read);
  return absl::OkStatus();
}

}  // namespace ltx::server
