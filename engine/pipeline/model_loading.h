#ifndef LTX_ENGINE_PIPELINE_MODEL_LOADING_H_
#define LTX_ENGINE_PIPELINE_MODEL_LOADING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/audio_config.h"
#include "engine/checkpoint/model_set.h"
#include "engine/checkpoint/text_config.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/upsampler_config.h"
#include "engine/checkpoint/video_vae_config.h"
#include "engine/pipeline/model_parts.h"
#include "engine/text/gemma_assets.h"
#include "kernels/device.h"

namespace ltx::pipeline {

/// What the files of a set say of themselves.
struct SetConfigs {
  checkpoint::TransformerConfig transformer;
  checkpoint::TextProjectionConfig text;
  checkpoint::VideoDecoderConfig video;
  checkpoint::AudioVaeConfig audio;
  checkpoint::VocoderConfig vocoder;
  /// Unset without an upsampler.
  std::optional<checkpoint::UpsamplerConfig> upsampler;
};

/// Parses every config and checks that the components fit each other, before anything is loaded.
/// FAILED_PRECONDITION (COMPONENT_MISSING) for a set without a part that every recipe needs,
/// INVALID_ARGUMENT (COMPONENT_MISMATCH) naming both sides where two disagree, else the parsers'
/// errors.
absl::StatusOr<SetConfigs> ReadConfigs(const checkpoint::ModelSet& files);

/// Loads everything onto the device.
absl::StatusOr<std::unique_ptr<ModelParts>> LoadParts(Device* device,
                                                      const checkpoint::ModelSet& files,
                                                      const SetConfigs& configs,
                                                      DType compute_dtype);

/// The leading whole numbers of a version such as "2.5.1" or "2.5-rc1" (reference: blocks.py).
/// Empty if it does not start with one; a missing part is smaller than any.
std::vector<int64_t> ParseVersion(absl::string_view version);

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_MODEL_LOADING_H_
