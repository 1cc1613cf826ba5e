#ifndef LTX_ENGINE_VIDEO_VAE_VIDEO_DECODER_H_
#define LTX_ENGINE_VIDEO_VAE_VIDEO_DECODER_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/video_vae/noise_source.h"
#include "kernels/tensor.h"

namespace ltx::video_vae {

/// How much larger pixels are than latents. A latent [F', H', W'] stands for
/// (F' - 1) temporal + 1 frames of spatial H' x spatial W' pixels.
struct CompressionFactors {
  int64_t spatial = 0;
  int64_t temporal = 0;
};

/// Frames that are final, in display order.
struct DecodedFrames {
  /// Position of the first of them in the clip.
  int64_t first_frame = 0;
  /// [n, H, W, 3] f32 in [0, 1].
  Tensor frames;
};

/// A decode in progress, in units that each take a bounded share of the work: what lies between two
/// units can be a cancellation, another job, or nothing.
class VideoDecodeSession {
 public:
  virtual ~VideoDecodeSession() = default;
  /// Units of the whole decode; known from the start.
  virtual int64_t unit_count() const = 0;
  virtual int64_t units_done() const = 0;
  bool done() const { return units_done() == unit_count(); }
  /// Runs one unit. Frames that became final with it, if any; over all units every frame comes once
  /// and in order. FAILED_PRECONDITION if the session is done. After an error the session is of no
  /// further use.
  virtual absl::StatusOr<std::optional<DecodedFrames>> Advance() = 0;
};

/// Turns normalised latents into frames.
class VideoDecoder {
 public:
  virtual ~VideoDecoder() = default;
  virtual CompressionFactors factors() const = 0;
  virtual int64_t latent_channels() const = 0;
  /// Decodes the first batch row of `latent` [B, F', H', W', C]. `noise` is called only by decoders
  /// that need draws, in execution order. The decoder must outlive the session. INVALID_ARGUMENT
  /// for a latent of another width or an empty one.
  virtual absl::StatusOr<std::unique_ptr<VideoDecodeSession>> StartDecode(
      const Tensor& latent, NoiseSource noise) const = 0;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_VIDEO_DECODER_H_
