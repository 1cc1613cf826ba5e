#include "engine/checkpoint/stored_form.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/json_text.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

bool HasDType(const SafetensorsFile::Entry* entry, DType dtype) {
  return entry != nullptr && entry->dtype == dtype;
}

/// The JSON object in the U8 marker tensor `name`.
absl::StatusOr<nlohmann::json> ReadMarker(const WeightSet& weights, const std::string& name) {
  const SafetensorsFile::Entry& marker = *weights.Find(name);
  const std::string subject = absl::StrCat(weights.PathOf(name), ": tensor \"", name, "\"");
  if (marker.dtype != DType::kU8) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, ": dtype is ", DTypeName(marker.dtype), ", legal is U8"));
  }
  const absl::string_view text(reinterpret_cast<const char*>(marker.bytes.data()),
                               marker.bytes.size());
  LTX_ASSIGN_OR_RETURN(nlohmann::json json, ParseJsonObject(text, subject));
  return json;
}

absl::StatusOr<StoredForm> FormOfComfyMarker(const WeightSet& weights, const std::string& name) {
  LTX_ASSIGN_OR_RETURN(const nlohmann::json marker, ReadMarker(weights, name));
  const std::string subject = absl::StrCat(weights.PathOf(name), ": tensor \"", name, "\"");
  const auto format = marker.find("format");
  if (format == marker.end() || !format->is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject, ": the marker has no string \"format\""));
  }
  const std::string value = format->get<std::string>();
  if (value == "float8_e4m3fn") return StoredForm::kScaledFp8;
  if (value == "nvfp4") return StoredForm::kNvfp4;
  if (value == "int8_tensorwise") {
    const auto rotated = marker.find("convrot");
    return rotated != marker.end() && rotated->is_boolean() && rotated->get<bool>()
               ? StoredForm::kInt8ConvRot
               : StoredForm::kInt8;
  }
  return absl::UnimplementedError(
      absl::StrCat(subject, ": stored form \"", value,
                   "\" is not supported, known are float8_e4m3fn, nvfp4, int8_tensorwise"));
}

}  // namespace

absl::string_view StoredFormName(StoredForm form) {
  switch (form) {
    case StoredForm::kPlain:
      return "plain";
    case StoredForm::kScaledFp8:
      return "scaled FP8";
    case StoredForm::kUnscaledFp8:
      return "unscaled FP8";
    case StoredForm::kNvfp4:
      return "NVFP4";
    case StoredForm::kTorchaoNvfp4:
      return "torchao NVFP4";
    case StoredForm::kTorchaoFlattened:
      return "flattened torchao NVFP4";
    case StoredForm::kInt8:
      return "int8";
    case StoredForm::kInt8ConvRot:
      return "int8 ConvRot";
  }
  return "unknown";
}

absl::StatusOr<StoredForm> DetectStoredForm(const WeightSet& weights, absl::string_view name) {
  const SafetensorsFile::Entry* const entry = weights.Find(name);
  absl::string_view module = name;
  if (absl::ConsumeSuffix(&module, ".weight")) {
    const std::string comfy = absl::StrCat(module, ".comfy_quant");
    if (weights.Contains(comfy)) return FormOfComfyMarker(weights, comfy);
    const std::string torchao = absl::StrCat(module, ".torchao_nvfp4");
    if (weights.Contains(torchao)) {
      LTX_RETURN_IF_ERROR(ReadMarker(weights, torchao).status());
      return StoredForm::kTorchaoNvfp4;
    }
    if (weights.Contains(absl::StrCat(module, "._weight_qdata"))) {
      return StoredForm::kTorchaoFlattened;
    }
  }
  if (entry == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(weights.PathOf(name), ": tensor \"", name, "\" is missing"));
  }
  const SafetensorsFile::Entry* const scale = weights.Find(absl::StrCat(name, "_scale"));
  switch (entry->dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF64:
      return StoredForm::kPlain;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return scale != nullptr ? StoredForm::kScaledFp8 : StoredForm::kUnscaledFp8;
    case DType::kI8:
      if (scale != nullptr) return StoredForm::kInt8;
      break;
    case DType::kU8: {
      const bool block = HasDType(scale, DType::kF8E4M3);
      const bool whole = HasDType(weights.Find(absl::StrCat(name, "_scale_2")), DType::kF32);
      if (block && whole) return StoredForm::kNvfp4;
      if (block || whole) {
        return absl::InvalidArgumentError(absl::StrCat(
            weights.PathOf(name), ": tensor \"", name, "\": only one of the NVFP4 scales \"", name,
            "_scale\" (F8_E4M3) and \"", name, "_scale_2\" (F32) is there"));
      }
      break;
    }
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kBool:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      weights.PathOf(name), ": tensor \"", name, "\": dtype is ", DTypeName(entry->dtype),
      " without scales, legal are F32, F16, BF16, F64 or a quantised form"));
}

}  // namespace ltx::checkpoint
