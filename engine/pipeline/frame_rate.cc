#include "engine/pipeline/frame_rate.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/error_details.h"

namespace ltx::pipeline {
namespace {

// Largest term of a fraction: enough for every broadcast rate and for microsecond periods, small
// enough that products of a term and a frame count stay far inside 64 bits.
constexpr int64_t kMaxTerm = 1'000'000;
// People write NTSC rates with two or three decimals: 23.976, 29.97, 59.94.
constexpr double kNtscTolerance = 1e-3;
// Relative; what six digits can express.
constexpr double kDecimalTolerance = 1e-6;

absl::Status Refuse(const std::string& value) {
  const std::string legal = absl::StrCat("a number from ", FrameRate::kMin, " to ", FrameRate::kMax,
                                         " frames per second");
  return WithDetail(absl::InvalidArgumentError(
                        absl::StrCat("frame_rate ", value, " is not legal, expected ", legal)),
                    {std::string(kReasonFrameRate), "frame_rate", value, legal});
}

}  // namespace

absl::StatusOr<FrameRate> FrameRate::FromRational(int64_t numerator, int64_t denominator) {
  const std::string text = absl::StrCat(numerator, "/", denominator);
  if (numerator <= 0 || denominator <= 0 || numerator > kMaxTerm || denominator > kMaxTerm) {
    return Refuse(text);
  }
  const double value = static_cast<double>(numerator) / static_cast<double>(denominator);
  if (value < kMin || value > kMax) return Refuse(text);
  const int64_t divisor = std::gcd(numerator, denominator);
  return FrameRate(numerator / divisor, denominator / divisor);
}

absl::StatusOr<FrameRate> FrameRate::FromDouble(double frames_per_second) {
  // Written so that NaN fails the test.
  if (!(frames_per_second >= kMin && frames_per_second <= kMax)) {
    return Refuse(absl::StrCat(frames_per_second));
  }
  const double nearest = std::nearbyint(frames_per_second);
  if (std::abs(frames_per_second - nearest) <= kDecimalTolerance) {
    return FromRational(static_cast<int64_t>(nearest), 1);
  }
  const double film = std::nearbyint(frames_per_second * 1001.0 / 1000.0);
  if (std::abs(frames_per_second - film * 1000.0 / 1001.0) <= kNtscTolerance) {
    return FromRational(static_cast<int64_t>(film) * 1000, 1001);
  }
  // Convergents of the continued fraction; h is the numerator, k the denominator.
  double rest = frames_per_second;
  int64_t h = 1, h_before = 0, k = 0, k_before = 1;
  while (true) {
    const auto whole = static_cast<int64_t>(std::floor(rest));
    const int64_t h_next = whole * h + h_before;
    const int64_t k_next = whole * k + k_before;
    if (h_next > kMaxTerm || k_next > kMaxTerm) break;
    h_before = h, k_before = k, h = h_next, k = k_next;
    const double fraction = rest - static_cast<double>(whole);
    if (std::abs(static_cast<double>(h) / static_cast<double>(k) - frames_per_second) <=
            kDecimalTolerance * frames_per_second ||
        fraction == 0.0) {
      break;
    }
    rest = 1.0 / fraction;
  }
  return FromRational(h, k);
}

std::string FrameRate::ToString() const {
  return denominator_ == 1 ? absl::StrCat(numerator_) : absl::StrCat(numerator_, "/", denominator_);
}

}  // namespace ltx::pipeline
