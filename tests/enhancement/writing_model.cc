#include "tests/enhancement/writing_model.h"

#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/test_files.h"
#include "kernels/status_macros.h"
#include "tools/random_model/checkpoint_writer.h"
#include "tools/random_model/model_layout.h"
#include "tools/random_model/model_size.h"

namespace ltx::testing {
namespace {

namespace fs = std::filesystem;
using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsWriter;

constexpr char kTiny[] = "models/ltx-tiny";
constexpr char kTransformer[] = "diffusion_models/ltx-tiny-distilled-transformer-bf16.safetensors";
constexpr char kTextEncoder[] = "text_encoders/gemma4-tiny-with-proj-ltx-tiny-bf16.safetensors";

}  // namespace

absl::StatusOr<std::string> WriteWritingModel(absl::string_view name) {
  const fs::path tiny(kTiny);
  const fs::path folder(checkpoint::MakeTestFolder(name));
  for (const char* part : {"vae", "latent_upscale_models", "model_patches", "model.json"}) {
    fs::create_symlink(fs::absolute(tiny / part), folder / part);
  }
  // Its maps from states to features fit the random tower, which has ltx-tiny's width and depth.
  SafetensorsWriter transformer = SafetensorsWriter::Copy((tiny / kTransformer).string());
  transformer.RemoveMetadata("gemma_source_checkpoint").Metadata("model_version", "2.3.0");
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<const SafetensorsFile> text,
                       SafetensorsFile::Open((tiny / kTextEncoder).string()));
  for (const auto& [tensor, entry] : text->entries()) {
    if (!absl::StartsWith(tensor, "text_embedding_projection.")) continue;
    transformer.Raw(tensor, entry.dtype, entry.shape,
                    {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()});
  }
  fs::create_directories(folder / "diffusion_models");
  transformer.WriteTo((folder / kTransformer).string());

  LTX_ASSIGN_OR_RETURN(
      const random_model::FileLayout tower,
      random_model::TextEncoderFile(random_model::TinySize(checkpoint::GemmaFamily::kGemma3)));
  const fs::path path = folder / tower.path;
  fs::create_directories(path.parent_path());
  LTX_RETURN_IF_ERROR(random_model::WriteCheckpoint(tower, path.string(), {}));
  return folder.string();
}

}  // namespace ltx::testing
