#include "engine/checkpoint/upsampler_config.h"

#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"

namespace ltx::checkpoint {
namespace {

/// Groups of the upsampler's norms.
constexpr int64_t kNormGroups = 32;

void ReadRationalScale(ConfigReader& reader, UpsamplerConfig* config) {
  if (config->spatial_scale == 0.75) {
    config->rational_up = 3;
    config->rational_down = 4;
  } else if (config->spatial_scale == 1.5) {
    config->rational_up = 3;
    config->rational_down = 2;
  } else if (config->spatial_scale == 2.0) {
    config->rational_up = 2;
    config->rational_down = 1;
  } else if (config->spatial_scale == 4.0) {
    config->rational_up = 4;
    config->rational_down = 1;
  } else {
    reader.FailValue("spatial_scale", "0.75, 1.5, 2 or 4 with a rational resampler");
  }
}

}  // namespace

absl::StatusOr<UpsamplerConfig> ParseUpsamplerConfig(const nlohmann::json& config) {
  ConfigReader reader(config, "config");
  UpsamplerConfig c;
  reader.OneOf<bool>("_class_name", true, {{"LatentUpsampler", true}});
  c.in_channels = reader.Int("in_channels", c.in_channels, 1, kMaxWidth);
  c.mid_channels = reader.Int("mid_channels", c.mid_channels, kNormGroups, kMaxWidth);
  c.num_blocks_per_stage =
      reader.Int("num_blocks_per_stage", c.num_blocks_per_stage, 0, kMaxLayers);
  c.dims = reader.Int("dims", c.dims, 2, 3);
  c.spatial_upsample = reader.Bool("spatial_upsample", c.spatial_upsample);
  c.temporal_upsample = reader.Bool("temporal_upsample", c.temporal_upsample);
  c.rational_resampler = reader.Bool("rational_resampler", c.rational_resampler);
  c.spatial_scale = reader.Number("spatial_scale", c.spatial_scale, 1e-3, 1e3);
  if (reader.status().ok()) {
    if (c.mid_channels % kNormGroups != 0) reader.FailValue("mid_channels", "a multiple of 32");
    if (!c.spatial_upsample && !c.temporal_upsample) {
      reader.Fail("spatial_upsample and temporal_upsample are both false, legal is one or both");
    }
    // Only a purely spatial upsampler has the rational step; the flag is idle in the others.
    const bool rational = c.rational_resampler && c.spatial_upsample && !c.temporal_upsample;
    if (rational) ReadRationalScale(reader, &c);
    c.rational_resampler = rational;
    if (c.dims == 2 && (c.temporal_upsample || rational)) {
      reader.FailValue("dims", "3 with a temporal or rational step");
    }
  }
  if (!reader.status().ok()) return reader.status();
  return c;
}

}  // namespace ltx::checkpoint
