#ifndef LTX_BENCH_COMPONENT_STAGES_H_
#define LTX_BENCH_COMPONENT_STAGES_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/stage.h"
#include "engine/checkpoint/model_set.h"
#include "kernels/device.h"

namespace ltx::bench {

/// Holds a loaded component and makes runs of it.
using PrepareFunction = std::function<absl::StatusOr<PreparedRun>(const StageSize&)>;
/// Loads a component of a set onto a device, which must outlive the function.
using ComponentLoader = absl::StatusOr<PrepareFunction> (*)(Device& device,
                                                            const checkpoint::ModelSet& files,
                                                            const StageOptions& options);

/// By stage name:
///   dit                 one forward of the transformer
///   text_tower          token ids to normalised hidden states, side by side
///   caption_projection  these to features of both streams
///   connectors          features to contexts, both streams
///   text                the three of them
///   video_decode        latent to frames
///   audio_decode        latent to waveform: VAE and vocoder
///   vocoder             mel spectrogram to waveform
///   upsampler           latent to latent of twice the height and width, which are the clip's
const std::vector<std::pair<absl::string_view, ComponentLoader>>& ComponentLoaders();

}  // namespace ltx::bench

#endif  // LTX_BENCH_COMPONENT_STAGES_H_
