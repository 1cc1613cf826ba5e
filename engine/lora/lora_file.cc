#include "engine/lora/lora_file.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/element_decode.h"
#include "kernels/status_macros.h"

namespace ltx::lora {
namespace {

using checkpoint::SafetensorsFile;

enum class Factor { kDown, kUp, kAlpha };

struct Suffix {
  absl::string_view text;
  Factor factor;
};
constexpr Suffix kSuffixes[] = {
    {".lora_A.weight", Factor::kDown}, {".lora_down.weight", Factor::kDown},
    {".lora_B.weight", Factor::kUp},   {".lora_up.weight", Factor::kUp},
    {".alpha", Factor::kAlpha},
};

/// The module that a name below its suffix stands for.
absl::string_view ModuleOf(absl::string_view name) {
  absl::ConsumePrefix(&name, "base_model.model.");
  for (const absl::string_view prefix :
       {"model.diffusion_model.", "diffusion_model.", "transformer."}) {
    if (absl::ConsumePrefix(&name, prefix)) break;
  }
  return name;
}

bool IsTextSide(absl::string_view module) {
  return absl::StartsWith(module, "text_embedding_projection.") ||
         absl::StartsWith(module, "video_embeddings_connector.") ||
         absl::StartsWith(module, "audio_embeddings_connector.");
}

/// Dtypes that adapters are published in. Anything else holds codes, not factors.
bool IsFactorDType(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

/// What a file says of one module before it is checked.
struct Found {
  LoraModule module;
  const SafetensorsFile::Entry* alpha = nullptr;
  std::string alpha_name;
};

absl::Status TensorError(absl::string_view path, absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor \"", name, "\" ", what));
}

absl::Status CheckFactor(absl::string_view path, absl::string_view name,
                         const SafetensorsFile::Entry& entry) {
  if (!IsFactorDType(entry.dtype)) {
    return TensorError(
        path, name,
        absl::StrCat("is ", DTypeName(entry.dtype), "; F32, BF16 and F16 would be legal"));
  }
  if (entry.shape.rank() != 2 || entry.shape.num_elements() == 0) {
    return TensorError(
        path, name,
        absl::StrCat("has shape ", entry.shape.ToString(), "; a matrix would be legal"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> AlphaOf(absl::string_view path, const Found& found) {
  const SafetensorsFile::Entry& entry = *found.alpha;
  if (entry.shape.num_elements() != 1 ||
      (!IsFactorDType(entry.dtype) && entry.dtype != DType::kF64 && entry.dtype != DType::kI64)) {
    return TensorError(path, found.alpha_name,
                       absl::StrCat("is ", entry.shape.ToString(), " ", DTypeName(entry.dtype),
                                    "; one number would be legal"));
  }
  const double alpha = checkpoint::DecodeDoubles(entry)[0];
  if (!std::isfinite(alpha)) {
    return TensorError(path, found.alpha_name, absl::StrCat("is ", alpha, "; must be finite"));
  }
  return alpha;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LoraFile>> LoraFile::Parse(
    std::shared_ptr<const SafetensorsFile> file, const LoraOptions& options) {
  std::shared_ptr<LoraFile> lora(new LoraFile(std::move(file)));
  LTX_RETURN_IF_ERROR(lora->Read(options));
  return lora;
}

absl::Status LoraFile::Read(const LoraOptions& options) {
  std::map<std::string, Found, std::less<>> found;
  std::vector<std::string> unknown;
  for (const auto& [name, entry] : file_->entries()) {
    absl::string_view module = name;
    const Suffix* suffix = nullptr;
    for (const Suffix& candidate : kSuffixes) {
      if (absl::ConsumeSuffix(&module, candidate.text)) {
        suffix = &candidate;
        break;
      }
    }
    if (suffix == nullptr || ModuleOf(module).empty()) {
      unknown.push_back(name);
      continue;
    }
    Found& item = found[std::string(ModuleOf(module))];
    const SafetensorsFile::Entry*& slot = suffix->factor == Factor::kDown ? item.module.down
                                          : suffix->factor == Factor::kUp ? item.module.up
                                                                          : item.alpha;
    std::string& slot_name = suffix->factor == Factor::kDown ? item.module.down_name
                             : suffix->factor == Factor::kUp ? item.module.up_name
                                                             : item.alpha_name;
    if (slot != nullptr) {
      return TensorError(path(), name, absl::StrCat("and \"", slot_name, "\" are one factor"));
    }
    slot = &entry;
    slot_name = name;
  }
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": ", unknown.size(),
                     " tensors are no LoRA factors: ", absl::StrJoin(unknown, ", ")));
  }
  for (auto& [name, item] : found) {
    LoraModule& module = item.module;
    if (module.down == nullptr || module.up == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(path(), ": module \"", name, "\" has no ",
                                                     module.down == nullptr ? "lora_A" : "lora_B",
                                                     " factor"));
    }
    LTX_RETURN_IF_ERROR(CheckFactor(path(), module.down_name, *module.down));
    LTX_RETURN_IF_ERROR(CheckFactor(path(), module.up_name, *module.up));
    if (module.up->shape.dim(1) != module.rank()) {
      return TensorError(
          path(), module.up_name,
          absl::StrCat("has shape ", module.up->shape.ToString(), ", \"", module.down_name, "\" ",
                       module.down->shape.ToString(), "; their ranks differ"));
    }
    if (item.alpha != nullptr && !options.ignore_alpha) {
      LTX_ASSIGN_OR_RETURN(const double alpha, AlphaOf(path(), item));
      module.scale = alpha / static_cast<double>(module.rank());
      ++alpha_count_;
    }
    if (IsTextSide(name)) {
      text_modules_.push_back(name);
    } else {
      modules_.emplace(name, std::move(module));
    }
  }
  if (modules_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": no LoRA factors of a transformer; it has ", text_modules_.size(),
                     " modules of the text side"));
  }
  return absl::OkStatus();
}

}  // namespace ltx::lora
