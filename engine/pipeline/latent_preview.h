#ifndef LTX_ENGINE_PIPELINE_LATENT_PREVIEW_H_
#define LTX_ENGINE_PIPELINE_LATENT_PREVIEW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/pipeline/model.h"

namespace ltx::pipeline {

/// A cheap picture of a latent: one pixel a token, its colour a linear function of the channels.
/// The function is the model's own, fitted once to the colours that its decoder gives to small
/// latents of one random token each, by ridge regression. (For Gaussian tokens the best linear fit
/// is the decoder's mean gradient. One token all over, since decoders answer to noise from token to
/// token in a way that no picture shows.) It knows colours and places, not detail: it tells early
/// whether a run goes where it should.
class LatentPreview {
 public:
  /// Decodes some hundred latents of 4 x 4 tokens and fits: the pixels of a few large frames, and
  /// the memory of a tiny one. RESOURCE_EXHAUSTED for lack of memory.
  static absl::StatusOr<LatentPreview> Fit(const Model& model);

  int64_t channels() const { return channels_; }
  /// Share of the variance of the decoder's colours that the fit explains, 0..1.
  double explained() const { return explained_; }

  struct Picture {
    int64_t latent_frame = 0;
    int64_t height = 0;
    int64_t width = 0;
    /// [height, width, 3]
    std::vector<uint8_t> rgb;
  };
  /// The middle latent frame of an estimate [1, T, channels] of a clip of that many pixel frames,
  /// rows and columns, downloaded from `device`. Tokens behind those of the clip belong to what it
  /// is conditioned on. INTERNAL if there are fewer.
  absl::StatusOr<Picture> MiddleFrame(Device& device, const Tensor& estimate, int64_t num_frames,
                                      int64_t height, int64_t width) const;

 private:
  /// Tokens [n, channels] to u8 [n, 3].
  void Project(absl::Span<const float> tokens, absl::Span<uint8_t> rgb) const;

  int64_t channels_ = 0;
  /// [channels + 1, 3], the constant last; of colours in [0, 1].
  std::vector<float> weights_;
  double explained_ = 0;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_LATENT_PREVIEW_H_
