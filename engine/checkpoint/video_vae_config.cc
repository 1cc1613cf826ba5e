#include "engine/checkpoint/video_vae_config.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

/// Blocks in one list; the published ones have nine.
constexpr size_t kMaxBlocks = 64;
/// Halvings along one axis. The published codecs have three in space (times the patch size) and
/// three in time.
constexpr int kMaxHalvings = 10;
constexpr int64_t kMaxMultiplier = 64;
constexpr int64_t kMaxPatchSize = 64;
constexpr int64_t kGroupNormGroups = 32;

using BlockName = std::pair<absl::string_view, VideoBlockKind>;
constexpr std::array<BlockName, 10> kBlockNames = {{
    {"res_x", VideoBlockKind::kResX},
    {"res_x_y", VideoBlockKind::kResXY},
    {"attn", VideoBlockKind::kAttn},
    {"compress_space", VideoBlockKind::kCompressSpace},
    {"compress_time", VideoBlockKind::kCompressTime},
    {"compress_all", VideoBlockKind::kCompressAll},
    {"compress_space_res", VideoBlockKind::kCompressSpaceRes},
    {"compress_time_res", VideoBlockKind::kCompressTimeRes},
    {"compress_all_res", VideoBlockKind::kCompressAllRes},
    {"compress_all_x_y", VideoBlockKind::kCompressAllXY},
}};

bool HalvesSpace(VideoBlockKind kind) {
  return kind == VideoBlockKind::kCompressSpace || kind == VideoBlockKind::kCompressAll ||
         kind == VideoBlockKind::kCompressSpaceRes || kind == VideoBlockKind::kCompressAllRes ||
         kind == VideoBlockKind::kCompressAllXY;
}

bool HalvesTime(VideoBlockKind kind) {
  return kind == VideoBlockKind::kCompressTime || kind == VideoBlockKind::kCompressAll ||
         kind == VideoBlockKind::kCompressTimeRes || kind == VideoBlockKind::kCompressAllRes ||
         kind == VideoBlockKind::kCompressAllXY;
}

int64_t Factor(const std::vector<VideoBlock>& blocks, bool (*halves)(VideoBlockKind)) {
  int64_t factor = 1;
  for (const VideoBlock& block : blocks) factor *= halves(block.kind) ? 2 : 1;
  return factor;
}

bool EncoderOnly(VideoBlockKind kind) {
  return kind == VideoBlockKind::kCompressSpaceRes || kind == VideoBlockKind::kCompressTimeRes ||
         kind == VideoBlockKind::kCompressAllRes || kind == VideoBlockKind::kCompressAllXY;
}

enum class Side { kEncoder, kDecoder };

/// The factor by which channels change when the parameters do not say it.
int64_t DefaultMultiplier(VideoBlockKind kind, Side side) {
  const bool changes =
      kind == VideoBlockKind::kResXY || (side == Side::kEncoder && EncoderOnly(kind));
  return changes ? 2 : 1;
}

/// The encoder's plain strided convolutions keep their channels, whatever a multiplier says.
bool HasMultiplier(VideoBlockKind kind, Side side) {
  if (kind == VideoBlockKind::kResX || kind == VideoBlockKind::kAttn) return false;
  return side == Side::kDecoder || EncoderOnly(kind) || kind == VideoBlockKind::kResXY;
}

std::optional<VideoBlockKind> KindOf(const nlohmann::json& name, Side side) {
  for (const BlockName& candidate : kBlockNames) {
    if (name.is_string() && name.get_ref<const std::string&>() == candidate.first &&
        !(side == Side::kDecoder && EncoderOnly(candidate.second))) {
      return candidate.second;
    }
  }
  return std::nullopt;
}

std::string LegalNames(Side side) {
  std::string names;
  for (const BlockName& candidate : kBlockNames) {
    if (side == Side::kDecoder && EncoderOnly(candidate.second)) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", candidate.first);
  }
  return names;
}

absl::StatusOr<VideoBlock> ParseBlock(const nlohmann::json& item, const std::string& path,
                                      Side side) {
  if (!item.is_array() || item.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", ShowValue(item), ", legal is [name, parameters]"));
  }
  const std::optional<VideoBlockKind> kind = KindOf(item[0], side);
  if (!kind.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, "[0] is ", ShowValue(item[0]), ", legal is one of ", LegalNames(side)));
  }
  // A bare integer stands for the number of layers.
  const nlohmann::json parameters =
      item[1].is_number_integer() ? nlohmann::json{{"num_layers", item[1]}} : item[1];
  ConfigReader reader(parameters, absl::StrCat(path, "[1]"));
  VideoBlock block;
  block.kind = *kind;
  if (block.kind == VideoBlockKind::kResX) {
    reader.Require("num_layers");
    block.num_layers = reader.Int("num_layers", 1, 1, kMaxLayers);
  }
  block.multiplier = DefaultMultiplier(block.kind, side);
  if (HasMultiplier(block.kind, side)) {
    block.multiplier = reader.Int("multiplier", block.multiplier, 1, kMaxMultiplier);
  }
  if (side == Side::kDecoder &&
      (block.kind == VideoBlockKind::kResX || block.kind == VideoBlockKind::kResXY)) {
    block.inject_noise = reader.Bool("inject_noise", false);
  }
  if (side == Side::kDecoder && block.kind == VideoBlockKind::kCompressAll) {
    block.residual = reader.Bool("residual", false);
  }
  if (!reader.status().ok()) return reader.status();
  return block;
}

absl::StatusOr<std::vector<VideoBlock>> ParseBlocks(const nlohmann::json* list,
                                                    const std::string& path, Side side) {
  std::vector<VideoBlock> blocks;
  if (list == nullptr) return blocks;
  if (!list->is_array() || list->size() > kMaxBlocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is ", ShowValue(*list), ", legal is a list of at most ", kMaxBlocks, " blocks"));
  }
  int space = 0;
  int time = 0;
  for (size_t i = 0; i < list->size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const VideoBlock block,
                         ParseBlock((*list)[i], absl::StrCat(path, "[", i, "]"), side));
    space += HalvesSpace(block.kind) ? 1 : 0;
    time += HalvesTime(block.kind) ? 1 : 0;
    blocks.push_back(block);
  }
  if (space > kMaxHalvings || time > kMaxHalvings) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " halves an axis more than ", kMaxHalvings, " times"));
  }
  return blocks;
}

VideoNorm ReadNorm(ConfigReader& reader) {
  return reader.OneOf<VideoNorm>(
      "norm_layer", VideoNorm::kPixelNorm,
      {{"pixel_norm", VideoNorm::kPixelNorm}, {"group_norm", VideoNorm::kGroupNorm}});
}

SpatialPadding ReadPadding(ConfigReader& reader, const char* key, SpatialPadding fallback) {
  return reader.OneOf<SpatialPadding>(key, fallback,
                                      {{"zeros", SpatialPadding::kZeros},
                                       {"reflect", SpatialPadding::kReflect},
                                       {"replicate", SpatialPadding::kReplicate},
                                       {"circular", SpatialPadding::kCircular}});
}

/// Follows the channels along a list from `first`, and checks that every width is a legal one.
absl::Status CheckWidths(const std::vector<VideoBlock>& blocks, int64_t first, VideoNorm norm,
                         const std::string& path) {
  int64_t channels = first;
  for (size_t i = 0; i <= blocks.size(); ++i) {
    if (channels > kMaxWidth) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " reaches ", channels, " channels, legal are ", kMaxWidth));
    }
    if (norm == VideoNorm::kGroupNorm && channels % kGroupNormGroups != 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, " reaches ", channels,
                                                     " channels, legal with group_norm are "
                                                     "multiples of 32"));
    }
    if (i < blocks.size()) channels *= blocks[i].multiplier;
  }
  return absl::OkStatus();
}

/// Only volumes exist.
void RequireThreeDims(ConfigReader& reader) { reader.Int("dims", 3, 3, 3); }

}  // namespace

absl::string_view VideoBlockName(VideoBlockKind kind) {
  for (const BlockName& candidate : kBlockNames) {
    if (candidate.second == kind) return candidate.first;
  }
  return "?";
}

int64_t VideoEncoderConfig::conv_out_channels() const {
  switch (latent_log_var) {
    case LatentLogVar::kPerChannel:
      return 2 * latent_channels;
    case LatentLogVar::kUniform:
    case LatentLogVar::kConstant:
      return latent_channels + 1;
    case LatentLogVar::kNone:
      return latent_channels;
  }
  return latent_channels;
}

int64_t VideoEncoderConfig::spatial_factor() const {
  return patch_size * Factor(blocks, HalvesSpace);
}

int64_t VideoEncoderConfig::temporal_factor() const { return Factor(blocks, HalvesTime); }

int64_t VideoDecoderConfig::bottleneck_channels() const {
  int64_t channels = base_channels;
  for (const VideoBlock& block : blocks) channels *= block.multiplier;
  return channels;
}

int64_t VideoDecoderConfig::spatial_factor() const {
  return patch_size * Factor(blocks, HalvesSpace);
}

int64_t VideoDecoderConfig::temporal_factor() const { return Factor(blocks, HalvesTime); }

absl::StatusOr<VideoEncoderConfig> ParseVideoEncoderConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  root.Require("vae");
  ConfigReader vae = root.Object("vae");
  const bool nested = vae.Has("encoder");
  ConfigReader reader = nested ? vae.Object("encoder") : vae;
  const std::string path = nested ? "config.vae.encoder" : "config.vae";

  VideoEncoderConfig c;
  RequireThreeDims(reader.Has("dims") ? reader : vae);
  c.in_channels = reader.Int("in_channels", c.in_channels, 1, kMaxWidth);
  c.latent_channels = vae.Int("latent_channels", c.latent_channels, 1, kMaxWidth);
  // In a flat config this key is the decoder's picture.
  if (nested) c.latent_channels = reader.Int("out_channels", c.latent_channels, 1, kMaxWidth);
  c.patch_size = reader.Int("patch_size", c.patch_size, 1, kMaxPatchSize);
  c.norm = ReadNorm(reader);
  c.latent_log_var = reader.OneOf<LatentLogVar>("latent_log_var", c.latent_log_var,
                                                {{"per_channel", LatentLogVar::kPerChannel},
                                                 {"uniform", LatentLogVar::kUniform},
                                                 {"constant", LatentLogVar::kConstant},
                                                 {"none", LatentLogVar::kNone}});
  // The encoder's own object comes first; in a flat config it is the decoder's, too.
  c.spatial_padding = reader.Has("spatial_padding_mode")
                          ? ReadPadding(reader, "spatial_padding_mode", c.spatial_padding)
                          : ReadPadding(vae, "encoder_spatial_padding_mode", c.spatial_padding);
  if (!reader.status().ok()) return reader.status();
  const char* const key = nested && reader.Has("blocks") ? "blocks" : "encoder_blocks";
  const std::string list = absl::StrCat(path, ".", key);
  LTX_ASSIGN_OR_RETURN(c.blocks, ParseBlocks(reader.Find(key), list, Side::kEncoder));
  // The first convolution already has the latent's width (reference: video_vae.py:VideoEncoder).
  LTX_RETURN_IF_ERROR(CheckWidths(c.blocks, c.latent_channels, c.norm, list));
  return c;
}

absl::StatusOr<VideoDecoderConfig> ParseVideoDecoderConfig(const nlohmann::json& config) {
  ConfigReader root(config, "config");
  root.Require("vae");
  ConfigReader reader = root.Object("vae");
  if (reader.String("_class_name", "CausalVideoAutoencoder") != "CausalVideoAutoencoder") {
    reader.Unsupported("_class_name", "CausalVideoAutoencoder");
  }
  VideoDecoderConfig c;
  RequireThreeDims(reader);
  c.latent_channels = reader.Int("latent_channels", c.latent_channels, 1, kMaxWidth);
  c.out_channels = reader.Int("out_channels", c.out_channels, 1, kMaxWidth);
  c.base_channels = reader.Int("decoder_base_channels", c.base_channels, 1, kMaxWidth);
  c.patch_size = reader.Int("patch_size", c.patch_size, 1, kMaxPatchSize);
  c.norm = ReadNorm(reader);
  c.causal = reader.Bool("causal_decoder", c.causal);
  c.timestep_conditioning = reader.Bool("timestep_conditioning", c.timestep_conditioning);
  c.spatial_padding = ReadPadding(reader, "spatial_padding_mode", c.spatial_padding);
  if (!reader.status().ok()) return reader.status();
  LTX_ASSIGN_OR_RETURN(c.blocks, ParseBlocks(reader.Find("decoder_blocks"),
                                             "config.vae.decoder_blocks", Side::kDecoder));
  LTX_RETURN_IF_ERROR(CheckWidths(c.blocks, c.base_channels, c.norm, "config.vae.decoder_blocks"));
  return c;
}

}  // namespace ltx::checkpoint
