#include "bench/stage.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/component_stages.h"
#include "bench/pipeline_stage.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

constexpr absl::string_view kPipeline = "pipeline";
/// On a device that records: the first run of a size is issued, the second recorded, and what the
/// third needs they all need from then on.
constexpr int kRunsUntilReplay = 3;

/// A component, and the same over shapes whenever a projection is asked for.
class ComponentStage final : public Stage {
 public:
  static absl::StatusOr<std::unique_ptr<Stage>> Load(ComponentLoader loader, Device* device,
                                                     const checkpoint::ModelSet* files,
                                                     const StageOptions& options) {
    auto stage = std::make_unique<ComponentStage>(loader, device, files, options);
    LTX_ASSIGN_OR_RETURN(stage->prepare_, loader(*device, *files, options));
    return stage;
  }
  ComponentStage(ComponentLoader loader, Device* device, const checkpoint::ModelSet* files,
                 const StageOptions& options)
      : loader_(loader), device_(device), files_(files), options_(options) {}

  absl::StatusOr<PreparedRun> Prepare(const StageSize& size) override { return prepare_(size); }

  absl::StatusOr<StageProjection> Project(const StageSize& size) override {
    ShapeDevice shapes(device_);
    LTX_ASSIGN_OR_RETURN(const PrepareFunction prepare, loader_(shapes, *files_, options_));
    LTX_ASSIGN_OR_RETURN(const PreparedRun prepared, prepare(size));
    shapes.ledger().ResetPeaks();
    shapes.ResetWork();
    StageProjection projection;
    projection.resident_bytes = shapes.ledger().Read().total.live_bytes;
    LTX_RETURN_IF_ERROR(prepared.run().status());
    projection.work = shapes.work();
    for (int i = 1; shapes.can_record() && i < kRunsUntilReplay; ++i) {
      LTX_RETURN_IF_ERROR(prepared.run().status());
    }
    const MemoryLedger::Snapshot seen = shapes.ledger().Read();
    projection.peak_bytes = seen.total.peak_bytes;
    for (int i = 0; i < kMemoryOwnerCount; ++i) {
      projection.owner_peak_bytes[i] = seen.by_owner[i].peak_bytes;
    }
    return projection;
  }

 private:
  const ComponentLoader loader_;
  Device* const device_;
  const checkpoint::ModelSet* const files_;
  const StageOptions options_;
  PrepareFunction prepare_;
};

}  // namespace

sampling::VideoLatentExtents ClipSize::latent() const {
  return sampling::LatentExtentsOf(frames, height, width);
}

int64_t ClipSize::audio_tokens() const {
  if (forced_audio_tokens > 0) return forced_audio_tokens;
  return sampling::AudioLatentFrames(static_cast<double>(frames) / frame_rate);
}

absl::StatusOr<std::vector<float>> ValuesOf(Device& device, const Tensor& result) {
  if (result.dtype() != DType::kU8) return ToFloats(device, result);
  LTX_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, ToBytes(device, result));
  return std::vector<float>(bytes.begin(), bytes.end());
}

std::vector<std::string> StageNames() {
  std::vector<std::string> names;
  for (const auto& [name, loader] : ComponentLoaders()) names.emplace_back(name);
  names.emplace_back(kPipeline);
  return names;
}

absl::StatusOr<std::unique_ptr<Stage>> LoadStage(absl::string_view name, Device* device,
                                                 const checkpoint::ModelSet* files,
                                                 const StageOptions& options) {
  if (name == kPipeline) return LoadPipelineStage(device, files, options);
  for (const auto& [known, loader] : ComponentLoaders()) {
    if (known == name) return ComponentStage::Load(loader, device, files, options);
  }
  return absl::InvalidArgumentError(absl::StrCat("stage \"", name, "\" is unknown; legal are ",
                                                 absl::StrJoin(StageNames(), ", ")));
}

}  // namespace ltx::bench
