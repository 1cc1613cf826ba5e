#ifndef LTX_ENGINE_PIPELINE_MODEL_PARTS_H_
#define LTX_ENGINE_PIPELINE_MODEL_PARTS_H_

#include <memory>
#include <optional>

#include "engine/audio_vae/audio_decoder.h"
#include "engine/audio_vae/vocoder.h"
#include "engine/dit/transformer.h"
#include "engine/pipeline/fused_cache.h"
#include "engine/text/duration_head.h"
#include "engine/text/prompt_cache.h"
#include "engine/text/prompt_encoder.h"
#include "engine/text/prompt_enhancer.h"
#include "engine/upsampler/latent_upsampler.h"
#include "engine/video_vae/statistics.h"
#include "engine/video_vae/video_decoder.h"

namespace ltx::pipeline {

/// The loaded components of a model set.
struct ModelParts {
  std::unique_ptr<text::PromptEncoder> prompt_encoder;
  /// In front of the encoder; set by Model::Load.
  std::unique_ptr<text::PromptCache> prompt_cache;
  /// Writes with the encoder's tower. Unset if that cannot, or nobody said how.
  std::optional<text::PromptEnhancer> prompt_enhancer;
  std::unique_ptr<dit::Transformer> transformer;
  std::unique_ptr<video_vae::VideoDecoder> video_decoder;
  /// Of the video VAE, for the upsampler.
  video_vae::ChannelStatistics video_statistics;
  /// Null if the set has none.
  std::unique_ptr<upsampler::LatentUpsampler> upsampler;
  std::optional<audio_vae::AudioDecoder> audio_decoder;
  std::optional<audio_vae::Vocoder> vocoder;
  /// Unset if the set has none.
  std::optional<text::DurationHead> duration_head;
  /// Copies of the transformer with the distilled LoRA in them; null if the set has none.
  std::unique_ptr<FusedCache> fused;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_MODEL_PARTS_H_
