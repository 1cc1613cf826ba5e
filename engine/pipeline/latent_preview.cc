#include "engine/pipeline/latent_preview.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/pipeline/model_parts.h"
#include "engine/sampling/latent_geometry.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::pipeline {
namespace {

/// Tokens along each side of a sample: 16 of them, so that borders do not rule.
constexpr int64_t kSide = 4;
/// Samples: three for each of 128 channels.
constexpr int kSamples = 384;
/// Added to the diagonal, as a share of the number of samples: keeps the weights of channels that
/// hardly matter near zero. Measured on ltx-tiny, where 0.02 to 0.5 differ little.
constexpr double kRidge = 0.2;

/// Row-major samples of the regression.
struct Samples {
  int64_t channels = 0;
  std::vector<float> tokens;   ///< [n, channels]
  std::vector<float> colours;  ///< [n, 3], in [0, 1]
  int64_t count() const { return static_cast<int64_t>(colours.size()) / 3; }
};

void AddMeanColour(absl::Span<const float> frame, std::vector<float>* colours) {
  double sum[3] = {0, 0, 0};
  for (size_t i = 0; i < frame.size(); ++i) sum[i % 3] += frame[i];
  for (const double channel : sum) {
    colours->push_back(static_cast<float>(channel * 3 / static_cast<double>(frame.size())));
  }
}

absl::StatusOr<Samples> DrawSamples(const Model& model) {
  Device& device = model.device();
  const video_vae::VideoDecoder& decoder = *model.parts().video_decoder;
  Samples samples;
  samples.channels = decoder.latent_channels();
  // Any fixed seed: the same model has the same preview.
  std::mt19937 generator(1);
  const auto no_noise = [&device](const Shape& shape, DType dtype) {
    return ZeroTensor(device, shape, dtype);
  };
  std::normal_distribution<float> normal;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::vector<float> token(samples.channels);
    for (float& value : token) value = normal(generator);
    std::vector<float> values;
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      values.insert(values.end(), token.begin(), token.end());
    }
    LTX_ASSIGN_OR_RETURN(const Tensor latent,
                         TensorFromFloats(device, values, {1, 1, kSide, kSide, samples.channels},
                                          model.compute_dtype()));
    LTX_ASSIGN_OR_RETURN(const auto session, decoder.StartDecode(latent, no_noise));
    while (!session->done()) {
      LTX_ASSIGN_OR_RETURN(const std::optional<video_vae::DecodedFrames> chunk, session->Advance());
      if (!chunk.has_value()) continue;
      LTX_ASSIGN_OR_RETURN(const std::vector<float> frame, ToFloats(device, chunk->frames));
      AddMeanColour(frame, &samples.colours);
      samples.tokens.insert(samples.tokens.end(), token.begin(), token.end());
    }
  }
  return samples;
}

/// Solves a x = b in place for symmetric positive a [n, n] and b [n, 3], by Cholesky.
void Solve(int64_t n, std::vector<double>* a, std::vector<double>* b) {
  std::vector<double>& l = *a;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      double sum = l[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
    }
  }
  for (int c = 0; c < 3; ++c) {
    const auto x = [b, c](int64_t i) -> double& { return (*b)[i * 3 + c]; };
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < i; ++k) x(i) -= l[i * n + k] * x(k);
      x(i) /= l[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      for (int64_t k = i + 1; k < n; ++k) x(i) -= l[k * n + i] * x(k);
      x(i) /= l[i * n + i];
    }
  }
}

/// Ridge regression with a constant: weights [channels + 1, 3].
std::vector<float> Regress(const Samples& samples) {
  const int64_t n = samples.channels + 1;
  std::vector<double> normal(n * n, 0.0);
  std::vector<double> target(n * 3, 0.0);
  std::vector<double> row(n, 1.0);
  for (int64_t s = 0; s < samples.count(); ++s) {
    std::copy_n(samples.tokens.begin() + s * samples.channels, samples.channels, row.begin());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) normal[i * n + j] += row[i] * row[j];
      for (int c = 0; c < 3; ++c) target[i * 3 + c] += row[i] * samples.colours[s * 3 + c];
    }
  }
  // The constant is left free.
  for (int64_t i = 0; i + 1 < n; ++i) normal[i * n + i] += kRidge * samples.count();
  Solve(n, &normal, &target);
  return std::vector<float>(target.begin(), target.end());
}

}  // namespace

absl::StatusOr<LatentPreview> LatentPreview::Fit(const Model& model) {
  LTX_ASSIGN_OR_RETURN(const Samples samples, DrawSamples(model));
  LatentPreview preview;
  preview.channels_ = samples.channels;
  preview.weights_ = Regress(samples);

  double residual = 0;
  double variance = 0;
  for (int c = 0; c < 3; ++c) {
    double mean = 0;
    for (int64_t s = 0; s < samples.count(); ++s) mean += samples.colours[s * 3 + c];
    mean /= static_cast<double>(samples.count());
    for (int64_t s = 0; s < samples.count(); ++s) {
      double value = preview.weights_[samples.channels * 3 + c];
      for (int64_t i = 0; i < samples.channels; ++i) {
        value += double{samples.tokens[s * samples.channels + i]} * preview.weights_[i * 3 + c];
      }
      const double truth = samples.colours[s * 3 + c];
      residual += (value - truth) * (value - truth);
      variance += (mean - truth) * (mean - truth);
    }
  }
  preview.explained_ = variance > 0 ? std::max(0.0, 1 - residual / variance) : 0;
  return preview;
}

void LatentPreview::Project(absl::Span<const float> tokens, absl::Span<uint8_t> rgb) const {
  const int64_t count = static_cast<int64_t>(rgb.size()) / 3;
  for (int64_t s = 0; s < count; ++s) {
    for (int c = 0; c < 3; ++c) {
      float value = weights_[channels_ * 3 + c];
      for (int64_t i = 0; i < channels_; ++i) {
        value += tokens[s * channels_ + i] * weights_[i * 3 + c];
      }
      // Not a number becomes black: a comparison with it is false.
      const float scaled = value > 0 ? std::min(value, 1.0f) * 255.0f + 0.5f : 0.0f;
      rgb[s * 3 + c] = static_cast<uint8_t>(scaled);
    }
  }
}

absl::StatusOr<LatentPreview::Picture> LatentPreview::MiddleFrame(Device& device,
                                                                  const Tensor& estimate,
                                                                  int64_t num_frames,
                                                                  int64_t height,
                                                                  int64_t width) const {
  const sampling::VideoLatentExtents extents = sampling::LatentExtentsOf(num_frames, height, width);
  const int64_t tokens = estimate.dim(1);
  if (extents.tokens() > tokens) {
    return absl::InternalError(absl::StrCat("a latent of ", tokens, " tokens is none of ",
                                            extents.frames, " x ", extents.height, " x ",
                                            extents.width));
  }
  Picture picture;
  picture.latent_frame = extents.frames / 2;
  picture.height = extents.height;
  picture.width = extents.width;
  const int64_t per_frame = extents.height * extents.width;
  LTX_ASSIGN_OR_RETURN(const Tensor rows, estimate.Reshape({tokens, estimate.dim(2)}));
  LTX_ASSIGN_OR_RETURN(const Tensor wanted, rows.Rows(picture.latent_frame * per_frame,
                                                      (picture.latent_frame + 1) * per_frame));
  LTX_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(device, wanted));
  picture.rgb.resize(per_frame * 3);
  Project(values, absl::MakeSpan(picture.rgb));
  return picture;
}

}  // namespace ltx::pipeline
