#include "engine/checkpoint/weight_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/element_decode.h"
#include "engine/checkpoint/stored_form.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {
namespace {

/// How many leftover names an error lists: enough to see the pattern.
constexpr size_t kMaxNamesInMessage = 12;

bool Matches(absl::string_view name, absl::string_view pattern) {
  return absl::EndsWith(pattern, "*")
             ? absl::StartsWith(name, pattern.substr(0, pattern.size() - 1))
             : name == pattern;
}

}  // namespace

WeightLoader::WeightLoader(Device* device, const WeightSet* weights, DType compute,
                           MemoryOwner owner)
    : device_(device),
      weights_(weights),
      compute_(compute),
      owner_(owner),
      state_(std::make_shared<State>()) {
  state_->uploads = device->StartUploads();
}

WeightLoader WeightLoader::WithPatch(const WeightPatch* patch) const {
  WeightLoader patched = *this;
  patched.patch_ = patch;
  return patched;
}

WeightLoader WeightLoader::WithPool(LinearPool* pool) const {
  WeightLoader pooled = *this;
  pooled.pool_ = pool;
  return pooled;
}

WeightLoader WeightLoader::Sub(absl::string_view prefix) const {
  WeightLoader sub = *this;
  absl::StrAppend(&sub.prefix_, prefix);
  return sub;
}

bool WeightLoader::Has(absl::string_view name) const {
  return weights_->Contains(absl::StrCat(prefix_, name));
}

const Shape* WeightLoader::ShapeOf(absl::string_view name) const {
  const SafetensorsFile::Entry* const entry = weights_->Find(absl::StrCat(prefix_, name));
  return entry == nullptr ? nullptr : &entry->shape;
}

absl::StatusOr<const SafetensorsFile::Entry*> WeightLoader::Consume(absl::string_view name,
                                                                    const Shape& shape) {
  const std::string full_name = absl::StrCat(prefix_, name);
  // The form first: a packed tensor has another shape than the matrix it stands for.
  LTX_ASSIGN_OR_RETURN(const StoredForm form, DetectStoredForm(*weights_, full_name));
  const std::string subject =
      absl::StrCat(weights_->PathOf(full_name), ": tensor \"", full_name, "\"");
  if (form != StoredForm::kPlain) {
    return absl::UnimplementedError(
        absl::StrCat(subject, " is stored as ", StoredFormName(form), ", which is not supported"));
  }
  const SafetensorsFile::Entry* const entry = weights_->Find(full_name);
  if (entry == nullptr || !IsFloat(entry->dtype)) {
    return absl::InternalError(absl::StrCat(subject, " has no plain data"));
  }
  if (entry->shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(subject, " has shape ", entry->shape.ToString(),
                                                   ", the config calls for ", shape.ToString()));
  }
  state_->consumed.insert(full_name);
  return entry;
}

MemoryOwner WeightLoader::LinearOperandOwner() const {
  return device_->keeps_linear_operands() ? owner_ : MemoryOwner::kWorkspace;
}

absl::Status WeightLoader::Fill(absl::string_view name, const SafetensorsFile::Entry& entry,
                                const Tensor& tensor) {
  if (!device_->holds_data()) return absl::OkStatus();
  if (entry.dtype == tensor.dtype()) {
    return state_->uploads->Add(weights_->SourceOf(absl::StrCat(prefix_, name)), tensor);
  }
  return UploadFloats(*device_, DecodeFloats(entry), tensor);
}

absl::StatusOr<Tensor> WeightLoader::Convert(absl::string_view name, const Shape& shape,
                                             DType dtype, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(const SafetensorsFile::Entry* entry, Consume(name, shape));
  LTX_ASSIGN_OR_RETURN(Tensor tensor, device_->Allocate(shape, dtype, owner));
  LTX_RETURN_IF_ERROR(Fill(name, *entry, tensor));
  return tensor;
}

absl::StatusOr<Tensor> WeightLoader::Join(absl::Span<const std::string> names,
                                          absl::Span<const Shape> shapes, bool stacked,
                                          MemoryOwner owner) {
  std::vector<const SafetensorsFile::Entry*> entries;
  std::vector<int64_t> dims;
  if (stacked) dims.push_back(0);
  dims.insert(dims.end(), shapes.front().dims().begin(), shapes.front().dims().end());
  dims.front() = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(const SafetensorsFile::Entry* entry, Consume(names[i], shapes[i]));
    entries.push_back(entry);
    dims.front() += stacked ? 1 : shapes[i].dim(0);
  }
  LTX_ASSIGN_OR_RETURN(Tensor whole, device_->Allocate(Shape(dims), compute_, owner));
  int64_t begin = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t end = begin + (stacked ? 1 : shapes[i].dim(0));
    LTX_ASSIGN_OR_RETURN(const Tensor part, whole.Rows(begin, end));
    LTX_RETURN_IF_ERROR(Fill(names[i], *entries[i], part));
    begin = end;
  }
  return whole;
}

absl::StatusOr<Tensor> WeightLoader::GetStacked(absl::Span<const std::string> names,
                                                const Shape& shape) {
  return Join(names, std::vector<Shape>(names.size(), shape), /*stacked=*/true, owner_);
}

absl::StatusOr<Tensor> WeightLoader::Get(absl::string_view name, const Shape& shape) {
  return Convert(name, shape, compute_, owner_);
}

absl::StatusOr<Tensor> WeightLoader::GetF32(absl::string_view name, const Shape& shape) {
  return Convert(name, shape, DType::kF32, owner_);
}

absl::StatusOr<std::vector<float>> WeightLoader::GetHost(absl::string_view name,
                                                         const Shape& shape) {
  LTX_ASSIGN_OR_RETURN(const SafetensorsFile::Entry* entry, Consume(name, shape));
  return DecodeFloats(*entry);
}

absl::StatusOr<WeightLoader::RawModule> WeightLoader::LoadModule(absl::string_view module,
                                                                 const Shape& weight_shape,
                                                                 int64_t out, bool bias) {
  RawModule raw;
  LTX_ASSIGN_OR_RETURN(raw.weight, Convert(absl::StrCat(module, ".weight"), weight_shape, compute_,
                                           MemoryOwner::kWorkspace));
  if (bias) {
    LTX_ASSIGN_OR_RETURN(
        raw.bias, Convert(absl::StrCat(module, ".bias"), {out}, compute_, MemoryOwner::kWorkspace));
  }
  return raw;
}

bool WeightLoader::IsPatched(absl::string_view name) const {
  return patch_ != nullptr && patch_->Changes(absl::StrCat(prefix_, name));
}

absl::StatusOr<Tensor> WeightLoader::PatchedWeight(absl::string_view name, const Shape& shape) {
  LTX_ASSIGN_OR_RETURN(const Tensor weight,
                       Convert(name, shape, compute_, MemoryOwner::kWorkspace));
  if (!IsPatched(name)) return weight;
  const std::string full_name = absl::StrCat(prefix_, name);
  state_->patched.insert(full_name);
  return patch_->Apply(*device_, full_name, weight);
}

const LinearWeight* WeightLoader::Pooled(absl::string_view key,
                                         absl::Span<const std::string> weights) const {
  if (pool_ == nullptr || std::any_of(weights.begin(), weights.end(),
                                      [this](const auto& name) { return IsPatched(name); })) {
    return nullptr;
  }
  return pool_->Find(key);
}

absl::StatusOr<LinearWeight> WeightLoader::Linear(absl::string_view module, int64_t in, int64_t out,
                                                  bool bias) {
  return FusedLinear({{std::string(module), out}}, in, bias);
}

absl::StatusOr<LinearWeight> WeightLoader::FusedLinear(absl::Span<const LinearPart> parts,
                                                       int64_t in, bool bias) {
  std::vector<std::string> weights;
  std::vector<std::string> biases;
  std::vector<Shape> weight_shapes;
  std::vector<Shape> bias_shapes;
  for (const LinearPart& part : parts) {
    weights.push_back(part.module + ".weight");
    weight_shapes.push_back({part.out, in});
    if (!bias) continue;
    biases.push_back(part.module + ".bias");
    bias_shapes.push_back({part.out});
  }
  const std::string key = absl::StrCat(prefix_, absl::StrJoin(weights, "|"), bias ? "|bias" : "");
  if (const LinearWeight* const pooled = Pooled(key, weights); pooled != nullptr) {
    for (size_t i = 0; i < parts.size(); ++i) {
      LTX_RETURN_IF_ERROR(Consume(weights[i], weight_shapes[i]).status());
      if (bias) LTX_RETURN_IF_ERROR(Consume(biases[i], bias_shapes[i]).status());
    }
    return *pooled;
  }
  RawModule raw;
  LTX_ASSIGN_OR_RETURN(raw.weight, JoinedWeight(weights, weight_shapes));
  if (bias) {
    LTX_ASSIGN_OR_RETURN(raw.bias,
                         Join(biases, bias_shapes, /*stacked=*/false, LinearOperandOwner()));
  }
  LTX_ASSIGN_OR_RETURN(LinearWeight weight, device_->PrepareLinear(raw.weight, raw.bias, owner_));
  if (pool_ != nullptr && patch_ == nullptr) pool_->Insert(key, weight);
  return weight;
}

absl::StatusOr<Tensor> WeightLoader::JoinedWeight(absl::Span<const std::string> names,
                                                  absl::Span<const Shape> shapes) {
  if (std::none_of(names.begin(), names.end(),
                   [this](const std::string& name) { return IsPatched(name); })) {
    return Join(names, shapes, /*stacked=*/false, LinearOperandOwner());
  }
  std::vector<Tensor> rows(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    LTX_ASSIGN_OR_RETURN(rows[i], PatchedWeight(names[i], shapes[i]));
  }
  if (rows.size() == 1) return LinearOperand(*device_, rows.front(), owner_);
  LTX_ASSIGN_OR_RETURN(const Tensor joined, device_->Concat(rows, 0));
  return LinearOperand(*device_, joined, owner_);
}

absl::StatusOr<ConvWeight> WeightLoader::Conv(absl::string_view module, int64_t in, int64_t out,
                                              const Shape& kernel, bool bias) {
  std::vector<int64_t> dims = {out, in};
  dims.insert(dims.end(), kernel.dims().begin(), kernel.dims().end());
  LTX_ASSIGN_OR_RETURN(const RawModule raw, LoadModule(module, Shape(dims), out, bias));
  return device_->PrepareConv(raw.weight, raw.bias, owner_);
}

absl::StatusOr<ConvWeight> WeightLoader::ConvTranspose1d(absl::string_view module, int64_t in,
                                                         int64_t out, int64_t kernel, bool bias) {
  LTX_ASSIGN_OR_RETURN(const RawModule raw, LoadModule(module, {in, out, kernel}, out, bias));
  return device_->PrepareConvTranspose1d(raw.weight, raw.bias, owner_);
}

void WeightLoader::Ignore(absl::string_view pattern) {
  state_->ignored.push_back(absl::StrCat(prefix_, pattern));
}

absl::Status WeightLoader::FinishUploads() const { return state_->uploads->Finish(); }

bool WeightLoader::IsIgnored(absl::string_view full_name) const {
  return std::any_of(
      state_->ignored.begin(), state_->ignored.end(),
      [full_name](const std::string& pattern) { return Matches(full_name, pattern); });
}

absl::Status WeightLoader::CheckAllConsumed() const {
  for (const std::string& name : patch_ == nullptr ? std::vector<std::string>() : patch_->Names()) {
    if (!absl::StartsWith(name, prefix_) || state_->patched.count(name) > 0 || IsIgnored(name)) {
      continue;
    }
    return absl::InternalError(absl::StrCat(weights_->PathOf(name), ": tensor \"", name,
                                            "\" is to be patched, but is no linear weight"));
  }
  std::vector<std::string> left;
  for (const std::string& name : weights_->Names()) {
    if (!absl::StartsWith(name, prefix_) || state_->consumed.count(name) > 0) continue;
    if (!IsIgnored(name)) left.push_back(name);
  }
  if (left.empty()) return FinishUploads();
  const size_t shown = std::min(left.size(), kMaxNamesInMessage);
  return absl::InvalidArgumentError(absl::StrCat(
      weights_->PathOf(left.front()), ": ", left.size(),
      " tensors belong to nothing in the config: ",
      absl::StrJoin(left.begin(), left.begin() + shown, ", "), shown < left.size() ? ", ..." : ""));
}

}  // namespace ltx::checkpoint
