#ifndef LTX_ENGINE_VIDEO_VAE_CONV_PROGRESS_H_
#define LTX_ENGINE_VIDEO_VAE_CONV_PROGRESS_H_

#include <cstdint>

namespace ltx::video_vae {

/// Which ends of a clip a part of it has. Where it has none it brings the frames that a kernel
/// reads there, and nothing is padded.
struct ClipEnds {
  bool first = true;
  bool last = true;
};

/// A part of a convolution's result over time, and the frames of the input that it is made from.
struct ConvPart {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t read_begin = 0;
  int64_t read_end = 0;
  ClipEnds ends;

  /// All of a clip.
  static ConvPart Whole(int64_t frames) { return {0, frames, 0, frames, {}}; }
  int64_t frames() const { return end - begin; }
};

/// Goes through a clip with a convolution of three frames at stride 1, part by part, as far as its
/// input is there.
///
/// Parts begin at even frames, and none is a single frame, unless the clip is one: devices may
/// compute frames in pairs, counted from the first that they are given, and single ones in another
/// way (kernels/cuda/winograd_transform.h). So a clip in parts has the bits of the whole.
class ConvProgress {
 public:
  /// `causal` as for CausalConv3d.
  ConvProgress(int64_t frames, bool causal)
      : frames_(frames), before_(causal ? 2 : 1), after_(causal ? 0 : 1) {}

  /// How many frames of the result can be made once `ready` of the input are there. `ready` may go
  /// on beyond the clip's end, and then so does this: in a row of convolutions each lags behind the
  /// one before it to the end, and none has more to do at a time than the others.
  int64_t Reach(int64_t ready) const;
  /// The next part, up to Reach(ready); without frames if there is nothing to make.
  ConvPart Next(int64_t ready);
  /// Frames of the result that were handed out.
  int64_t done() const { return done_; }
  bool finished() const { return done_ == frames_; }
  /// The first frame of the input that parts to come read.
  int64_t needed_from() const { return done_ > before_ ? done_ - before_ : 0; }

 private:
  int64_t frames_;
  /// Frames around one of the result that it is made from.
  int64_t before_;
  int64_t after_;
  int64_t done_ = 0;
};

/// The least even number of frames of `positions` each that have `wanted` positions: how long a
/// part is.
int64_t FramesPerPart(int64_t wanted, int64_t positions);

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_CONV_PROGRESS_H_
