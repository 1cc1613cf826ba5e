#include "engine/text/gemma_assets.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/element_decode.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/safetensors.h"
#include "kernels/status_macros.h"

namespace ltx::text {
namespace {

namespace fs = std::filesystem;
using checkpoint::SafetensorsFile;

constexpr absl::string_view kTokenizerConfig = "tokenizer_config.json";

/// A published tokenizer.json has 33 MB; anything far above is no such file.
constexpr uintmax_t kMaxTextFileBytes = 256u << 20;

absl::Status Missing(const std::string& source, absl::string_view what) {
  return absl::NotFoundError(absl::StrCat("text encoder ", source, ": ", what, " is missing"));
}

/// A text kept as a one-dimensional integer tensor. Some packs store signed or wide integers: each
/// value counts modulo 256.
absl::StatusOr<std::string> TensorText(const SafetensorsFile& file, absl::string_view name,
                                       const SafetensorsFile::Entry& entry) {
  if (entry.shape.rank() != 1 || IsFloat(entry.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "text encoder ", file.path(), ": tensor ", name, " is ", DTypeName(entry.dtype), " ",
        entry.shape.ToString(), ", a text must be a one-dimensional integer tensor"));
  }
  if (SizeOf(entry.dtype) == 1) {
    return std::string(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  }
  LTX_ASSIGN_OR_RETURN(const std::vector<int64_t> values, checkpoint::DecodeInts(entry));
  std::string text;
  text.reserve(values.size());
  for (const int64_t value : values) {
    text.push_back(static_cast<char>(static_cast<uint8_t>(static_cast<uint64_t>(value) & 0xffu)));
  }
  return text;
}

absl::StatusOr<GemmaAssets> FromFile(const std::shared_ptr<const SafetensorsFile>& file) {
  const std::string& path = file->path();
  GemmaAssets assets;
  assets.source = path;
  const auto config = file->metadata().find("gemma_config");
  if (config == file->metadata().end()) return Missing(path, "the metadata gemma_config");
  LTX_ASSIGN_OR_RETURN(assets.config, checkpoint::ParseJsonObject(
                                          config->second, absl::StrCat(path, " gemma_config")));
  const auto tokenizer = file->entries().find("tokenizer_json");
  if (tokenizer == file->entries().end()) return Missing(path, "the tensor tokenizer_json");
  LTX_ASSIGN_OR_RETURN(assets.tokenizer_json,
                       TensorText(*file, tokenizer->first, tokenizer->second));
  const auto side = file->entries().find(absl::StrCat("hf_asset__", kTokenizerConfig));
  const auto metadata_side = file->metadata().find(kTokenizerConfig);
  if (side != file->entries().end()) {
    LTX_ASSIGN_OR_RETURN(assets.tokenizer_config_json,
                         TensorText(*file, side->first, side->second));
  } else if (metadata_side != file->metadata().end()) {
    assets.tokenizer_config_json = metadata_side->second;
  } else {
    return Missing(path, absl::StrCat("the side file ", kTokenizerConfig));
  }
  LTX_RETURN_IF_ERROR(assets.weights.Add(file));
  return assets;
}

/// All regular files below `root`, those of upper folders first, then by name: a fixed meaning for
/// "the first one found".
absl::StatusOr<std::vector<fs::path>> FilesBelow(const fs::path& root) {
  std::vector<std::pair<int, fs::path>> found;
  std::error_code error;
  fs::recursive_directory_iterator it(root, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) found.emplace_back(it.depth(), it->path());
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("text encoder ", root.string(),
                                            ": cannot list the folder: ", error.message()));
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (auto& [depth, path] : found) files.push_back(std::move(path));
  return files;
}

absl::StatusOr<std::string> ReadNamed(const std::string& source, const std::vector<fs::path>& files,
                                      absl::string_view name) {
  const auto it = std::find_if(files.begin(), files.end(), [&](const fs::path& path) {
    return path.filename().string() == name;
  });
  if (it == files.end()) return Missing(source, absl::StrCat("the file ", name));
  std::error_code error;
  const uintmax_t size = fs::file_size(*it, error);
  if (error || size > kMaxTextFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("text encoder file ", it->string(), ": not readable or too large"));
  }
  std::ifstream stream(*it, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.good() && !stream.eof()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", it->string()));
  }
  return text;
}

bool IsBelow(const fs::path& path, const fs::path& folder) {
  return absl::StartsWith(path.string(), absl::StrCat(folder.string(), "/"));
}

absl::StatusOr<GemmaAssets> FromFolder(const std::string& path) {
  GemmaAssets assets;
  assets.source = path;
  LTX_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesBelow(path));
  LTX_ASSIGN_OR_RETURN(const std::string config, ReadNamed(path, files, "config.json"));
  LTX_ASSIGN_OR_RETURN(assets.config,
                       checkpoint::ParseJsonObject(config, absl::StrCat(path, " config.json")));
  LTX_ASSIGN_OR_RETURN(assets.tokenizer_json, ReadNamed(path, files, "tokenizer.json"));
  LTX_ASSIGN_OR_RETURN(assets.tokenizer_config_json, ReadNamed(path, files, kTokenizerConfig));
  const auto is_weights = [](const fs::path& file) { return file.extension() == ".safetensors"; };
  const auto first = std::find_if(files.begin(), files.end(), [&](const fs::path& file) {
    return is_weights(file) && absl::StartsWith(file.filename().string(), "model");
  });
  if (first == files.end()) return Missing(path, "a file model*.safetensors");
  const fs::path folder = first->parent_path();
  for (const fs::path& file : files) {
    if (!is_weights(file) || !IsBelow(file, folder)) continue;
    LTX_ASSIGN_OR_RETURN(const std::shared_ptr<const SafetensorsFile> opened,
                         SafetensorsFile::Open(file.string()));
    LTX_RETURN_IF_ERROR(assets.weights.Add(opened));
  }
  return assets;
}

}  // namespace

absl::StatusOr<GemmaAssets> LoadGemmaAssets(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return FromFolder(path);
  if (fs::is_regular_file(status)) {
    LTX_ASSIGN_OR_RETURN(const std::shared_ptr<const SafetensorsFile> file,
                         SafetensorsFile::Open(path));
    return FromFile(file);
  }
  return absl::NotFoundError(absl::StrCat("text encoder ", path, ": neither a file nor a folder"));
}

absl::StatusOr<GemmaAssets> LoadGemmaAssets(const std::shared_ptr<const SafetensorsFile>& file) {
  return FromFile(file);
}

}  // namespace ltx::text
