#include "engine/checkpoint/model_set.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/file_kind.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/model_set_checks.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {
namespace {

namespace fs = std::filesystem;
using File = std::shared_ptr<const SafetensorsFile>;

/// Deeper folders are not searched: published packs use one level, Hugging Face caches three.
constexpr int kMaxFolderDepth = 8;
/// Far above any model.json or config.json.
constexpr std::uintmax_t kMaxJsonFileBytes = 16 << 20;

absl::StatusOr<std::string> ReadText(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat(path.string(), ": ", error.message()));
  }
  if (bytes > kMaxJsonFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": has ", bytes, " bytes, legal are ", kMaxJsonFileBytes));
  }
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  if (!stream || (bytes > 0 && !(text << stream.rdbuf()))) {
    return absl::NotFoundError(absl::StrCat(path.string(), ": cannot read"));
  }
  return text.str();
}

/// What lies below a model folder.
struct FolderContents {
  std::vector<fs::path> tensor_files;
  /// Folders in Hugging Face layout.
  std::vector<fs::path> text_encoder_folders;
};

bool IsHuggingFaceFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "config.json", error) &&
         fs::is_regular_file(path / "tokenizer.json", error);
}

absl::StatusOr<FolderContents> ListFolder(const fs::path& folder) {
  FolderContents contents;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::follow_directory_symlink,
                                      error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      const bool hidden = absl::StartsWith(path.filename().string(), ".");
      const bool text_encoder = !hidden && IsHuggingFaceFolder(path);
      if (text_encoder) contents.text_encoder_folders.push_back(path);
      if (hidden || text_encoder || it.depth() >= kMaxFolderDepth) it.disable_recursion_pending();
    } else if (path.extension() == ".safetensors") {
      contents.tensor_files.push_back(path);
    }
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(folder.string(), ": ", error.message()));
  }
  // The order of a folder's entries is up to the file system; messages shall not be.
  std::sort(contents.tensor_files.begin(), contents.tensor_files.end());
  std::sort(contents.text_encoder_folders.begin(), contents.text_encoder_folders.end());
  return contents;
}

/// What a kind is looked for by, for messages.
absl::string_view SignOf(FileKind kind) {
  switch (kind) {
    case FileKind::kTransformer:
      return "tensors model.diffusion_model.transformer_blocks.*";
    case FileKind::kTextEncoder:
      return "metadata gemma_config and tensor tokenizer_json, or a folder with config.json and "
             "tokenizer.json";
    case FileKind::kVideoVae:
      return "tensors decoder.* or vae.decoder.*";
    case FileKind::kAudioVae:
      return "tensors audio_vae.* and vocoder.*";
    default:
      return "";
  }
}

/// The files of a folder by kind, at most one each (but any number of adapters).
class FileTable {
 public:
  static absl::StatusOr<FileTable> Build(const fs::path& folder, const ModelManifest& manifest,
                                         ModelSet* set) {
    LTX_ASSIGN_OR_RETURN(const FolderContents contents, ListFolder(folder));
    FileTable table(folder);
    for (const fs::path& path : contents.tensor_files) {
      LTX_ASSIGN_OR_RETURN(const File file, SafetensorsFile::Open(path.string()));
      LTX_RETURN_IF_ERROR(table.Add(file, manifest, set));
    }
    if (manifest.files.count(FileKind::kTextEncoder) == 0) {
      for (const fs::path& path : contents.text_encoder_folders) {
        LTX_RETURN_IF_ERROR(table.Insert(FileKind::kTextEncoder, path.string(), nullptr));
      }
    }
    for (const auto& [kind, path] : manifest.files) {
      LTX_RETURN_IF_ERROR(table.InsertNamed(kind, folder / path));
    }
    return table;
  }

  static absl::StatusOr<FileTable> Build(absl::Span<const File> files, ModelSet* set) {
    FileTable table("the given files");
    for (const File& file : files) LTX_RETURN_IF_ERROR(table.Add(file, {}, set));
    return table;
  }

  bool Has(FileKind kind) const { return items_.count(kind) > 0; }
  /// Null for a text encoder folder.
  const File& file(FileKind kind) const { return items_.at(kind).file; }
  const std::string& path(FileKind kind) const { return items_.at(kind).path; }

  absl::Status Require(FileKind kind) const {
    if (Has(kind)) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(folder_.string(), ": there is no ", FileKindName(kind),
                                            " file (", SignOf(kind), ")"));
  }

 private:
  struct Item {
    std::string path;
    File file;
  };
  explicit FileTable(fs::path folder) : folder_(std::move(folder)) {}

  /// What a file holds of kinds that the manifest does not name.
  absl::Status Add(const File& file, const ModelManifest& manifest, ModelSet* set) {
    const std::set<FileKind> kinds = RecogniseFile(*file);
    if (kinds.empty()) set->unrecognised_files.push_back(file->path());
    for (const FileKind kind : kinds) {
      if (kind == FileKind::kLora) {
        set->loras.push_back(file);
      } else if (manifest.files.count(kind) == 0) {
        LTX_RETURN_IF_ERROR(Insert(kind, file->path(), file));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Insert(FileKind kind, const std::string& path, const File& file) {
    const auto [existing, inserted] = items_.try_emplace(kind, Item{path, file});
    if (inserted) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("two files of kind ", FileKindName(kind), ": ",
                                                   existing->second.path, " and ", path,
                                                   "; model.json may name one in \"files\""));
  }

  absl::Status InsertNamed(FileKind kind, const fs::path& path) {
    if (kind == FileKind::kTextEncoder && IsHuggingFaceFolder(path)) {
      return Insert(kind, path.string(), nullptr);
    }
    LTX_ASSIGN_OR_RETURN(const File file, SafetensorsFile::Open(path.string()));
    const FileKind content = kind == FileKind::kDistilledLora ? FileKind::kLora : kind;
    if (RecogniseFile(*file).count(content) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), ": model.json names it as ",
                                                     FileKindName(kind), ", but it holds none"));
    }
    return Insert(kind, path.string(), file);
  }

  fs::path folder_;
  std::map<FileKind, Item> items_;
};

/// A status with the file's path in front of its message.
absl::Status InFile(const SafetensorsFile& file, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(file.path(), ": ", status.message()));
}

template <typename T>
absl::Status Assign(const SafetensorsFile& file, absl::StatusOr<T> parsed, T* target) {
  if (!parsed.ok()) return InFile(file, parsed.status());
  *target = *std::move(parsed);
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> ConfigOf(const SafetensorsFile& file) {
  const auto text = file.metadata().find("config");
  if (text == file.metadata().end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), ": metadata has no \"config\", which the tensors alone cannot replace"));
  }
  return ParseJsonObject(text->second, absl::StrCat(file.path(), ": metadata config"));
}

std::string MetadataOr(const SafetensorsFile& file, absl::string_view key) {
  const auto it = file.metadata().find(key);
  return it == file.metadata().end() ? "" : it->second;
}

absl::Status ReadTransformer(const File& file, ModelSet* set) {
  set->transformer_file = file;
  set->model_version = MetadataOr(*file, "model_version");
  LTX_ASSIGN_OR_RETURN(const nlohmann::json config, ConfigOf(*file));
  LTX_RETURN_IF_ERROR(InFile(*file, ValidateTransformerRequired(config)));
  LTX_RETURN_IF_ERROR(Assign(*file, ParseTransformerConfig(config), &set->transformer));
  return Assign(*file, ParseTextProjectionConfig(config), &set->text_projection);
}

absl::Status ReadTextEncoder(const std::string& path, const File& file, ModelSet* set) {
  set->text_encoder_path = path;
  set->text_encoder_file = file;
  std::string text;
  std::string subject;
  if (file == nullptr) {
    subject = absl::StrCat(path, "/config.json");
    LTX_ASSIGN_OR_RETURN(text, ReadText(subject));
  } else {
    subject = absl::StrCat(path, ": metadata gemma_config");
    const auto it = file->metadata().find("gemma_config");
    if (it == file->metadata().end()) {
      return absl::InvalidArgumentError(absl::StrCat(subject, " is missing"));
    }
    if (file->entries().count("tokenizer_json") == 0) {
      return absl::NotFoundError(absl::StrCat(path, ": tensor \"tokenizer_json\" is missing"));
    }
    text = it->second;
  }
  LTX_ASSIGN_OR_RETURN(const nlohmann::json config, ParseJsonObject(text, subject));
  absl::StatusOr<GemmaConfig> gemma = ParseGemmaConfig(config);
  if (!gemma.ok()) {
    return absl::Status(gemma.status().code(), absl::StrCat(path, ": ", gemma.status().message()));
  }
  set->gemma = *std::move(gemma);
  return absl::OkStatus();
}

absl::Status ReadVideoVae(const File& file, ModelSet* set) {
  set->video_vae_file = file;
  set->video_vae_version = MetadataOr(*file, "model_version");
  LTX_ASSIGN_OR_RETURN(const nlohmann::json config, ConfigOf(*file));
  LTX_RETURN_IF_ERROR(Assign(*file, ParseVideoDecoderConfig(config), &set->video_decoder));
  return Assign(*file, ParseVideoEncoderConfig(config), &set->video_encoder);
}

absl::Status ReadAudioVae(const File& file, ModelSet* set) {
  set->audio_vae_file = file;
  LTX_ASSIGN_OR_RETURN(const nlohmann::json config, ConfigOf(*file));
  LTX_RETURN_IF_ERROR(Assign(*file, ParseAudioVaeConfig(config), &set->audio_vae));
  return Assign(*file, ParseVocoderConfig(config), &set->vocoder);
}

absl::Status ReadOptionalFiles(const FileTable& table, ModelSet* set) {
  const std::pair<FileKind, std::optional<ModelSet::Upsampler>*> upsamplers[] = {
      {FileKind::kSpatialUpsampler, &set->spatial_upsampler},
      {FileKind::kTemporalUpsampler, &set->temporal_upsampler}};
  for (const auto& [kind, target] : upsamplers) {
    if (!table.Has(kind)) continue;
    const File& file = table.file(kind);
    LTX_ASSIGN_OR_RETURN(const nlohmann::json config, ConfigOf(*file));
    target->emplace();
    (*target)->file = file;
    LTX_RETURN_IF_ERROR(Assign(*file, ParseUpsamplerConfig(config), &(*target)->config));
  }
  if (table.Has(FileKind::kDurationHead)) {
    const File& file = table.file(FileKind::kDurationHead);
    LTX_ASSIGN_OR_RETURN(const nlohmann::json config, ConfigOf(*file));
    set->duration_head.emplace();
    set->duration_head->file = file;
    LTX_RETURN_IF_ERROR(
        Assign(*file, ParseDurationHeadConfig(config), &set->duration_head->config));
  }
  return absl::OkStatus();
}

/// The adapter that model.json names, or the only one whose name says that it is the one.
absl::Status FindDistilledLora(const FileTable& table, ModelSet* set) {
  if (table.Has(FileKind::kDistilledLora)) {
    set->distilled_lora = table.file(FileKind::kDistilledLora);
    return absl::OkStatus();
  }
  for (const File& lora : set->loras) {
    if (!absl::StrContains(fs::path(lora->path()).filename().string(), "distilled")) continue;
    if (set->distilled_lora != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("two files of kind distilled_lora: ", set->distilled_lora->path(), " and ",
                       lora->path(), "; model.json may name one in \"files\""));
    }
    set->distilled_lora = lora;
  }
  return absl::OkStatus();
}

std::string FolderName(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

/// Reads the configs of the files and checks them against each other.
absl::Status Assemble(const FileTable& table, const ModelManifest& manifest, ModelSet* set) {
  for (const FileKind kind :
       {FileKind::kTransformer, FileKind::kTextEncoder, FileKind::kVideoVae, FileKind::kAudioVae}) {
    LTX_RETURN_IF_ERROR(table.Require(kind));
  }
  LTX_RETURN_IF_ERROR(ReadTransformer(table.file(FileKind::kTransformer), set));
  LTX_RETURN_IF_ERROR(
      ReadTextEncoder(table.path(FileKind::kTextEncoder), table.file(FileKind::kTextEncoder), set));
  LTX_RETURN_IF_ERROR(ReadVideoVae(table.file(FileKind::kVideoVae), set));
  LTX_RETURN_IF_ERROR(ReadAudioVae(table.file(FileKind::kAudioVae), set));
  LTX_RETURN_IF_ERROR(ReadOptionalFiles(table, set));

  set->name = manifest.name.value_or(FolderName(set->folder));
  const std::string transformer_name = fs::path(set->transformer_file->path()).filename().string();
  set->kind = manifest.kind.value_or(
      absl::StrContains(transformer_name, "distilled") ? ModelKind::kDistilled : ModelKind::kDev);
  set->defaults = {manifest.width, manifest.height, manifest.num_frames, manifest.frame_rate};
  set->limits = {manifest.min_frames, manifest.max_frames, manifest.min_size, manifest.max_size};
  LTX_RETURN_IF_ERROR(FindDistilledLora(table, set));

  LTX_RETURN_IF_ERROR(CheckGemmaVersion(set));
  LTX_RETURN_IF_ERROR(CheckWidths(*set));
  return CheckTensors(set);
}

}  // namespace

absl::StatusOr<ModelSet> ModelSet::Open(const std::string& folder) {
  std::error_code error;
  if (folder.empty() || !fs::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat("model folder \"", folder, "\": no such folder"));
  }
  ModelSet set;
  set.folder = folder;
  ModelManifest manifest;
  const fs::path manifest_path = fs::path(folder) / "model.json";
  if (fs::exists(manifest_path, error)) {
    LTX_ASSIGN_OR_RETURN(const std::string text, ReadText(manifest_path));
    LTX_ASSIGN_OR_RETURN(manifest, ParseModelManifest(text, manifest_path.string()));
  }
  LTX_ASSIGN_OR_RETURN(const FileTable table, FileTable::Build(folder, manifest, &set));
  LTX_RETURN_IF_ERROR(Assemble(table, manifest, &set));
  return set;
}

absl::StatusOr<ModelSet> ModelSet::FromFiles(absl::Span<const File> files,
                                             const ModelManifest& manifest) {
  ModelSet set;
  LTX_ASSIGN_OR_RETURN(const FileTable table, FileTable::Build(files, &set));
  LTX_RETURN_IF_ERROR(Assemble(table, manifest, &set));
  return set;
}

}  // namespace ltx::checkpoint
