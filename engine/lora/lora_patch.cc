#include "engine/lora/lora_patch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/element_decode.h"
#include "engine/checkpoint/stored_form.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::lora {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::StoredForm;
using checkpoint::WeightSet;

absl::StatusOr<Tensor> LoadFactor(Device& device, const SafetensorsFile::Entry& entry,
                                  DType dtype) {
  LTX_ASSIGN_OR_RETURN(Tensor factor, device.Allocate(entry.shape, dtype, MemoryOwner::kWorkspace));
  if (!device.holds_data()) return factor;
  if (entry.dtype == dtype) {
    LTX_RETURN_IF_ERROR(device.Upload(entry.bytes, factor));
  } else {
    LTX_RETURN_IF_ERROR(UploadFloats(device, checkpoint::DecodeFloats(entry), factor));
  }
  return factor;
}

/// up [out, rank] @ down [rank, in].
absl::StatusOr<Tensor> Product(Device& device, const Tensor& up, const Tensor& down) {
  LTX_ASSIGN_OR_RETURN(const Tensor columns, device.Permute(down, {1, 0}));
  LTX_ASSIGN_OR_RETURN(const LinearWeight weight,
                       device.PrepareLinear(columns, Tensor(), MemoryOwner::kWorkspace));
  return device.Linear(up, weight);
}

/// T(delta + factor (up @ down)), the product in f32.
absl::StatusOr<Tensor> Accumulated(Device& device, const Tensor& delta, double factor,
                                   const Tensor& up, const Tensor& down) {
  LTX_ASSIGN_OR_RETURN(const Tensor wide_up, device.Cast(up, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor wide_down, device.Cast(down, DType::kF32));
  LTX_ASSIGN_OR_RETURN(const Tensor product, Product(device, wide_up, wide_down));
  // WeightedSum takes states: a matrix is one sample.
  const Shape state = {1, delta.dim(0), delta.dim(1)};
  LTX_ASSIGN_OR_RETURN(const Tensor before, delta.Reshape(state));
  LTX_ASSIGN_OR_RETURN(const Tensor added, product.Reshape(state));
  LTX_ASSIGN_OR_RETURN(const Tensor sum,
                       device.WeightedSum({{before, {1.0}}, {added, {factor}}}, delta.dtype()));
  return sum.Reshape(delta.shape());
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoraPatch>> LoraPatch::Create(std::vector<WeightedLora> loras,
                                                             const WeightSet& weights,
                                                             absl::string_view prefix,
                                                             Unmatched unmatched) {
  std::unique_ptr<LoraPatch> patch(new LoraPatch());
  patch->loras_ = std::move(loras);
  for (const WeightedLora& lora : patch->loras_) {
    LTX_RETURN_IF_ERROR(patch->Match(lora, weights, prefix, unmatched));
  }
  std::sort(patch->skipped_.begin(), patch->skipped_.end());
  return patch;
}

absl::Status LoraPatch::Match(const WeightedLora& lora, const WeightSet& weights,
                              absl::string_view prefix, Unmatched unmatched) {
  const std::string& path = lora.file->path();
  if (!std::isfinite(lora.strength)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": LoRA strength ", lora.strength, " must be finite"));
  }
  std::vector<std::string> missing;
  for (const auto& [name, module] : lora.file->modules()) {
    const std::string weight_name = absl::StrCat(prefix, name, ".weight");
    const SafetensorsFile::Entry* const entry = weights.Find(weight_name);
    if (entry == nullptr) {
      missing.push_back(name);
      continue;
    }
    LTX_ASSIGN_OR_RETURN(const StoredForm form, DetectStoredForm(weights, weight_name));
    if (form != StoredForm::kPlain) {
      return absl::UnimplementedError(
          absl::StrCat(path, ": a LoRA onto \"", weight_name, "\", which is stored as ",
                       checkpoint::StoredFormName(form), ", is not supported"));
    }
    const Update update = {lora.file.get(), &module, lora.strength * module.scale};
    LTX_RETURN_IF_ERROR(CheckShapes(update, entry->shape, weight_name));
    if (lora.strength == 0.0) continue;
    std::vector<Update>& updates = updates_[weight_name];
    if (updates.empty()) changed_elements_ += entry->shape.num_elements();
    updates.push_back(update);
  }
  if (missing.size() == lora.file->modules().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": none of its ", missing.size(),
                     " modules is in the transformer; it is a LoRA of another model: ",
                     absl::StrJoin(missing, ", ")));
  }
  if (!missing.empty() && unmatched == Unmatched::kRefuse) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", missing.size(),
                     " modules are not in the transformer: ", absl::StrJoin(missing, ", ")));
  }
  skipped_.insert(skipped_.end(), missing.begin(), missing.end());
  return absl::OkStatus();
}

absl::Status LoraPatch::CheckShapes(const Update& update, const Shape& weight,
                                    absl::string_view name) {
  const LoraModule& module = *update.module;
  const Shape delta = {module.up->shape.dim(0), module.down->shape.dim(1)};
  if (delta == weight) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      update.file->path(), ": \"", module.up_name, "\" ", module.up->shape.ToString(), " and \"",
      module.down_name, "\" ", module.down->shape.ToString(), " make an update of ",
      delta.ToString(), "; \"", name, "\" has shape ", weight.ToString()));
}

std::vector<std::string> LoraPatch::Names() const {
  std::vector<std::string> names;
  names.reserve(updates_.size());
  for (const auto& [name, updates] : updates_) names.push_back(name);
  return names;
}

bool LoraPatch::Changes(absl::string_view name) const { return updates_.count(name) > 0; }

absl::StatusOr<Tensor> LoraPatch::Apply(Device& device, absl::string_view name,
                                        const Tensor& weight) const {
  const auto it = updates_.find(name);
  if (it == updates_.end()) {
    return absl::InternalError(absl::StrCat("no LoRA changes \"", name, "\""));
  }
  Tensor delta;
  for (const Update& update : it->second) {
    LTX_ASSIGN_OR_RETURN(const Tensor down,
                         LoadFactor(device, *update.module->down, weight.dtype()));
    LTX_ASSIGN_OR_RETURN(const Tensor up, LoadFactor(device, *update.module->up, weight.dtype()));
    if (delta.defined()) {
      LTX_ASSIGN_OR_RETURN(delta, Accumulated(device, delta, update.factor, up, down));
    } else {
      LTX_ASSIGN_OR_RETURN(const Tensor scaled,
                           device.Scale(up, static_cast<float>(update.factor)));
      LTX_ASSIGN_OR_RETURN(delta, Product(device, scaled, down));
    }
  }
  LTX_ASSIGN_OR_RETURN(Tensor fused, device.Add(weight, delta));
  LTX_ASSIGN_OR_RETURN(const bool finite, device.AllFinite(fused));
  if (!finite) {
    return absl::InvalidArgumentError(absl::StrCat(it->second.front().file->path(), ": \"", name,
                                                   "\" is not finite after the fusion"));
  }
  return fused;
}

}  // namespace ltx::lora
