#ifndef LTX_ENGINE_PIPELINE_FRAME_RATE_H_
#define LTX_ENGINE_PIPELINE_FRAME_RATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ltx::pipeline {

/// Frames per second as an exact fraction in lowest terms, so that 23.976 stays 24000/1001 in the
/// written file and sound and picture do not drift apart.
class FrameRate {
 public:
  /// Slowest and fastest rate accepted, in frames per second. One frame per second bounds the
  /// length of the sound that a number of frames can ask for; 240 is the fastest common capture.
  static constexpr double kMin = 1.0;
  static constexpr double kMax = 240.0;

  /// 24 frames per second, the rate of the reference's defaults.
  FrameRate() = default;

  /// The fraction meant by a decimal number: an integer n; n * 1000/1001 for a rate within 0.001
  /// of it (23.976, 29.97, 59.94); else the simplest fraction within one millionth of the number.
  /// INVALID_ARGUMENT (FRAME_RATE) for NaN, infinities and anything outside [kMin, kMax].
  static absl::StatusOr<FrameRate> FromDouble(double frames_per_second);

  /// INVALID_ARGUMENT (FRAME_RATE) if a term is not positive, above one million, or the quotient
  /// lies outside [kMin, kMax].
  static absl::StatusOr<FrameRate> FromRational(int64_t numerator, int64_t denominator);

  int64_t numerator() const { return numerator_; }
  int64_t denominator() const { return denominator_; }
  double value() const { return static_cast<double>(numerator_) / denominator_; }
  /// "24" or "24000/1001".
  std::string ToString() const;

  friend bool operator==(const FrameRate& a, const FrameRate& b) {
    return a.numerator_ == b.numerator_ && a.denominator_ == b.denominator_;
  }
  friend bool operator!=(const FrameRate& a, const FrameRate& b) { return !(a == b); }

 private:
  FrameRate(int64_t numerator, int64_t denominator)
      : numerator_(numerator), denominator_(denominator) {}

  int64_t numerator_ = 24;
  int64_t denominator_ = 1;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_FRAME_RATE_H_
