#ifndef LTX_ENGINE_AUDIO_VAE_CONV1D_H_
#define LTX_ENGINE_AUDIO_VAE_CONV1D_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"

namespace ltx::audio_vae {

/// A length-keeping 1-D convolution of the vocoder: stride 1, zero padding dilation (k - 1), split
/// evenly with the odd element behind.
class Conv1d {
 public:
  struct Options {
    int64_t kernel = 1;
    int64_t dilation = 1;
    bool bias = true;
    /// Of weights and signals; f32 or the loader's compute dtype.
    DType dtype = DType::kF32;
  };

  /// `module`.weight [out, in, k] and `module`.bias [out]. Errors of the weight loader.
  static absl::StatusOr<Conv1d> Load(checkpoint::WeightLoader& loader, absl::string_view module,
                                     int64_t in_channels, int64_t out_channels,
                                     const Options& options);

  /// x [B, T, in] -> [B, T, out], plus `residual` (same shape as the result) if defined.
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x,
                                 const Tensor& residual = {}) const;

 private:
  ConvWeight weight_;
  AxisGeometry geometry_;
};

/// A transposed 1-D convolution: length T -> (T - 1) stride - 2 p + k with p = (k - stride) / 2
/// rounded down, which is T * stride if k - stride is even and T * stride + 1 if it is odd.
class ConvTranspose1d {
 public:
  /// `module`.weight [in, out, k] and `module`.bias [out]. FAILED_PRECONDITION if k < stride;
  /// errors of the weight loader.
  static absl::StatusOr<ConvTranspose1d> Load(checkpoint::WeightLoader& loader,
                                              absl::string_view module, int64_t in_channels,
                                              int64_t out_channels, int64_t kernel, int64_t stride,
                                              DType dtype);

  /// x [B, T, in] -> [B, OutputLength(T), out].
  absl::StatusOr<Tensor> Forward(Device& device, const Tensor& x) const;

  static int64_t OutputLength(int64_t length, int64_t kernel, int64_t stride);

 private:
  ConvWeight weight_;
  int64_t stride_ = 1;
  int64_t padding_ = 0;
};

}  // namespace ltx::audio_vae

#endif  // LTX_ENGINE_AUDIO_VAE_CONV1D_H_
