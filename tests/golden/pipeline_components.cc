#include "tests/golden/pipeline_components.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/audio_vae/latent_grid.h"
#include "engine/sampling/latent_geometry.h"
#include "engine/sampling/latent_state.h"
#include "kernels/status_macros.h"
#include "tests/golden/case_params.h"
#include "tests/golden/pipeline_runs.h"

namespace ltx::golden {
namespace {

using nlohmann::json;

absl::StatusOr<std::vector<std::string>> StringListParam(const GoldenCase& golden,
                                                         const char* name) {
  const auto it = golden.params().find(name);
  std::vector<std::string> list;
  if (it != golden.params().end() && it->is_array()) {
    for (const json& value : *it) {
      if (value.is_string()) list.push_back(value.get<std::string>());
    }
    if (list.size() == it->size()) return list;
  }
  return absl::InvalidArgumentError(absl::StrCat("params.", name, " is not a list of strings"));
}

/// A parameter that is a list of rows of numbers.
absl::StatusOr<std::vector<std::vector<double>>> Rows(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  std::vector<std::vector<double>> rows;
  if (it == golden.params().end() || !it->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat("params.", name, " is not a list"));
  }
  for (const json& row : *it) {
    std::vector<double> values;
    for (const json& value : row.is_array() ? row : json::array({row})) {
      if (!value.is_number()) {
        return absl::InvalidArgumentError(absl::StrCat("params.", name, " holds no numbers"));
      }
      values.push_back(value.get<double>());
    }
    rows.push_back(std::move(values));
  }
  return rows;
}

absl::Status CheckWidth(const std::vector<double>& row, size_t width, const char* name) {
  if (row.size() == width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("params.", name, " has a row of ", row.size(), " numbers, not ", width));
}

absl::Status PixelToLatent(const GoldenCase& golden, GoldenOutputs* outputs) {
  LTX_ASSIGN_OR_RETURN(const auto shapes, Rows(golden, "pixel_shapes_fhw_fps"));
  LTX_ASSIGN_OR_RETURN(const auto columns, StringListParam(golden, "pixel_to_latent_columns"));
  std::vector<int64_t> table;
  for (const std::vector<double>& shape : shapes) {
    LTX_RETURN_IF_ERROR(CheckWidth(shape, 4, "pixel_shapes_fhw_fps"));
    const auto latent =
        sampling::LatentExtentsOf(static_cast<int64_t>(shape[0]), static_cast<int64_t>(shape[1]),
                                  static_cast<int64_t>(shape[2]));
    const int64_t audio = sampling::AudioLatentFrames(shape[0] / shape[3]);
    const sampling::ScaleFactors factors;
    const std::map<std::string, int64_t> values = {
        {"latent_frames", latent.frames},
        {"latent_h", latent.height},
        {"latent_w", latent.width},
        {"video_tokens", latent.tokens()},
        {"audio_latent_frames", audio},
        {"audio_tokens", audio},
        {"pixel_frames_back", sampling::PixelFramesOf(latent.frames)},
        {"pixel_h_back", latent.height * factors.height},
        {"pixel_w_back", latent.width * factors.width},
    };
    for (const std::string& column : columns) {
      const auto it = values.find(column);
      if (it == values.end()) {
        return absl::UnimplementedError(absl::StrCat("pixel_to_latent column ", column));
      }
      table.push_back(it->second);
    }
  }
  outputs->SetInts("pixel_to_latent",
                   {static_cast<int64_t>(shapes.size()), static_cast<int64_t>(columns.size())},
                   table);
  return absl::OkStatus();
}

void SetList(absl::string_view name, const std::vector<int64_t>& values, GoldenOutputs* outputs) {
  outputs->SetInts(name, Shape{static_cast<int64_t>(values.size())}, values);
}

absl::Status ShapeCounts(const GoldenCase& golden, const GoldenContext&, GoldenOutputs* outputs) {
  LTX_RETURN_IF_ERROR(PixelToLatent(golden, outputs));
  std::vector<int64_t> list;
  LTX_ASSIGN_OR_RETURN(const auto durations, Rows(golden, "durations"));
  for (const auto& row : durations) list.push_back(sampling::AudioLatentFrames(row[0]));
  SetList("audio_frames_from_duration", list, outputs);

  list.clear();
  LTX_ASSIGN_OR_RETURN(const auto snap_in, Rows(golden, "snap_in"));
  for (const auto& row : snap_in) {
    LTX_ASSIGN_OR_RETURN(const int64_t frames,
                         sampling::SnapFramesDown(static_cast<int64_t>(row[0])));
    list.push_back(frames);
  }
  SetList("snapped", list, outputs);

  list.clear();
  LTX_ASSIGN_OR_RETURN(const auto clamp_in, Rows(golden, "clamp_in_seconds_fps_min_max"));
  for (const auto& row : clamp_in) {
    LTX_RETURN_IF_ERROR(CheckWidth(row, 4, "clamp_in_seconds_fps_min_max"));
    LTX_ASSIGN_OR_RETURN(const int64_t frames,
                         sampling::FramesForDuration(row[0], row[1], static_cast<int64_t>(row[2]),
                                                     static_cast<int64_t>(row[3])));
    list.push_back(frames);
  }
  SetList("clamped", list, outputs);

  LTX_ASSIGN_OR_RETURN(const auto keyframes, Rows(golden, "keyframes_n_frames"));
  for (const auto& row : keyframes) {
    LTX_RETURN_IF_ERROR(CheckWidth(row, 2, "keyframes_n_frames"));
    const auto count = static_cast<int64_t>(row[0]);
    const auto frames = static_cast<int64_t>(row[1]);
    LTX_ASSIGN_OR_RETURN(const auto positions, sampling::EvenKeyframePositions(count, frames));
    SetList(absl::StrCat("keyframes.", count, "_", frames), positions, outputs);
  }
  return absl::OkStatus();
}

absl::Status PatchifyVideo(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  LTX_ASSIGN_OR_RETURN(const auto shapes, Rows(golden, "shapes_b_c_f_h_w_fps"));
  LTX_ASSIGN_OR_RETURN(const auto scale, Rows(golden, "scale_factors"));
  if (scale.size() != 3) return absl::InvalidArgumentError("params.scale_factors needs 3 numbers");
  const sampling::ScaleFactors factors = {static_cast<int64_t>(scale[0][0]),
                                          static_cast<int64_t>(scale[1][0]),
                                          static_cast<int64_t>(scale[2][0])};
  for (size_t i = 0; i < shapes.size(); ++i) {
    LTX_RETURN_IF_ERROR(CheckWidth(shapes[i], 6, "shapes_b_c_f_h_w_fps"));
    LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, absl::StrCat("latent.", i)));
    const int64_t batch = latent.dim(0);
    const sampling::VideoLatentExtents extents = {latent.dim(2), latent.dim(3), latent.dim(4)};
    LTX_ASSIGN_OR_RETURN(const Tensor tokens, sampling::PatchifyVideo(device, latent));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("tokens.", i), tokens));
    outputs->SetFloats(absl::StrCat("positions.", i), {batch, 3, extents.tokens(), 2},
                       sampling::VideoPositions(extents, shapes[i][5], batch, factors));
    outputs->SetFloats(absl::StrCat("keyframes_mask.", i), {batch, extents.tokens(), 1},
                       sampling::FirstFrameMask(extents, batch));
    LTX_ASSIGN_OR_RETURN(
        const Tensor back,
        sampling::UnpatchifyVideo(device, tokens, extents.frames, extents.height, extents.width));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("unpatchified.", i), back));
  }
  return absl::OkStatus();
}

absl::Status PatchifyAudio(const GoldenCase& golden, const GoldenContext& context,
                           GoldenOutputs* outputs) {
  Device& device = *context.device;
  audio_vae::LatentGrid grid;
  LTX_ASSIGN_OR_RETURN(grid.sample_rate, Param<int64_t>(golden, "sample_rate"));
  LTX_ASSIGN_OR_RETURN(grid.hop_length, Param<int64_t>(golden, "hop_length"));
  LTX_ASSIGN_OR_RETURN(grid.time_factor, Param<int64_t>(golden, "downsample"));
  const auto causal = golden.params().find("causal");
  if (causal == golden.params().end() || !causal->is_boolean()) {
    return absl::InvalidArgumentError("params.causal is not a boolean");
  }
  grid.causal = causal->get<bool>();
  LTX_ASSIGN_OR_RETURN(const auto shapes, Rows(golden, "shapes_b_c_t_m"));
  for (size_t i = 0; i < shapes.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const Tensor latent, golden.Input(device, absl::StrCat("latent.", i)));
    const int64_t batch = latent.dim(0);
    LTX_ASSIGN_OR_RETURN(const Tensor tokens, audio_vae::PatchifyAudio(device, latent));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("tokens.", i), tokens));
    std::vector<float> positions;
    for (int64_t b = 0; b < batch; ++b) {
      for (const std::array<float, 2>& bounds : grid.TokenBounds(latent.dim(2))) {
        positions.insert(positions.end(), bounds.begin(), bounds.end());
      }
    }
    outputs->SetFloats(absl::StrCat("positions.", i), {batch, 1, latent.dim(2), 2}, positions);
    LTX_ASSIGN_OR_RETURN(const Tensor back,
                         audio_vae::UnpatchifyAudio(device, tokens, latent.dim(1)));
    LTX_RETURN_IF_ERROR(outputs->Set(device, absl::StrCat("unpatchified.", i), back));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterPipelineComponents(ComponentRegistry* registry) {
  registry->emplace("shape.counts", ShapeCounts);
  registry->emplace("patchify.video", PatchifyVideo);
  registry->emplace("patchify.audio", PatchifyAudio);
  RegisterPipelineRuns(registry);
}

}  // namespace ltx::golden
