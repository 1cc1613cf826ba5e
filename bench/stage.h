#ifndef LTX_BENCH_STAGE_H_
#define LTX_BENCH_STAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/model_set.h"
#include "engine/sampling/latent_geometry.h"
#include "kernels/device.h"
#include "kernels/shape_device.h"
#include "nlohmann/json.hpp"

namespace ltx::bench {

/// A clip as its latents count it.
struct ClipSize {
  int64_t width = 768;
  int64_t height = 512;
  int64_t frames = 121;
  double frame_rate = 24.0;
  /// Above 0: in place of what the duration gives.
  int64_t forced_audio_tokens = 0;

  sampling::VideoLatentExtents latent() const;
  int64_t video_tokens() const { return latent().tokens(); }
  int64_t audio_tokens() const;
};

/// What one run works on; stages read what concerns them.
struct StageSize {
  ClipSize clip;
  int64_t text_tokens = 1024;
  /// Guidance passes of the transformer in one batch, 1 to 4.
  int passes = 1;
  /// Distinct noise levels among its tokens.
  int levels = 1;
};

struct StageOptions {
  /// kF32 or kBF16.
  DType dtype = DType::kBF16;
  /// Whether the transformer's forwards are recorded and replayed on a device that can.
  bool record = true;
  /// Of the whole pipeline.
  std::string recipe = "distilled";
};

/// A stage with inputs of one size, which it holds.
struct PreparedRun {
  /// The numbers behind the size: tokens, frames, ...
  nlohmann::json size;
  /// Issues the work; the device may still be at it. The results.
  std::function<absl::StatusOr<std::vector<Tensor>>()> run;
  /// What else there is to tell of the last run; may be empty.
  std::function<nlohmann::json()> details;
};

/// What a run takes by the engine's own code on a device of shapes (kernels/shape_device.h).
struct StageProjection {
  /// Live before the run: weights, inputs, tables that are kept.
  int64_t resident_bytes = 0;
  /// Total, and each owner's own.
  int64_t peak_bytes = 0;
  std::array<int64_t, kMemoryOwnerCount> owner_peak_bytes{};
  WorkCount work;
};

/// A part of the engine over weights on a device.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Inputs are the same values on every device. The stage must outlive the run.
  virtual absl::StatusOr<PreparedRun> Prepare(const StageSize& size) = 0;
  virtual absl::StatusOr<StageProjection> Project(const StageSize& size) = 0;
};

/// The elements of a result: f32, bf16, or the bytes of finished frames.
absl::StatusOr<std::vector<float>> ValuesOf(Device& device, const Tensor& result);

/// Names of all stages.
std::vector<std::string> StageNames();

/// `device` and `files` must outlive the stage. INVALID_ARGUMENT for an unknown name; the errors of
/// the component's loader.
absl::StatusOr<std::unique_ptr<Stage>> LoadStage(absl::string_view name, Device* device,
                                                 const checkpoint::ModelSet* files,
                                                 const StageOptions& options);

}  // namespace ltx::bench

#endif  // LTX_BENCH_STAGE_H_
