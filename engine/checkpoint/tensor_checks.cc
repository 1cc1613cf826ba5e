#include "engine/checkpoint/tensor_checks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/element_decode.h"
#include "engine/checkpoint/stored_form.h"
#include "kernels/status_macros.h"

namespace ltx::checkpoint {

TensorChecks TensorChecks::Sub(absl::string_view prefix) const {
  return TensorChecks(*file_, absl::StrCat(prefix_, prefix));
}

const SafetensorsFile::Entry* TensorChecks::Find(absl::string_view name) const {
  const auto it = file_->entries().find(absl::StrCat(prefix_, name));
  return it == file_->entries().end() ? nullptr : &it->second;
}

bool TensorChecks::Has(absl::string_view name) const { return Find(name) != nullptr; }

bool TensorChecks::HasBelow(absl::string_view prefix) const {
  const std::string full = absl::StrCat(prefix_, prefix);
  const auto it = file_->entries().lower_bound(full);
  return it != file_->entries().end() && absl::StartsWith(it->first, full);
}

absl::Status TensorChecks::Error(absl::StatusCode code, absl::string_view name,
                                 absl::string_view what) const {
  return absl::Status(code, absl::StrCat(file_->path(), ": tensor \"", prefix_, name, "\" ", what));
}

absl::Status TensorChecks::Shape(absl::string_view name, const ltx::Shape& shape) const {
  const SafetensorsFile::Entry* const entry = Find(name);
  if (entry == nullptr) return Error(absl::StatusCode::kNotFound, name, "is missing");
  if (entry->shape != shape) {
    return Error(absl::StatusCode::kInvalidArgument, name,
                 absl::StrCat("has shape ", entry->shape.ToString(), ", the config calls for ",
                              shape.ToString()));
  }
  return absl::OkStatus();
}

absl::Status TensorChecks::Switch(absl::string_view name, absl::string_view key, bool value) const {
  if (Has(name) == value) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, name,
               absl::StrCat(value ? "is missing" : "is there", ", but ", key, " is ",
                            value ? "true" : "false"));
}

absl::Status TensorChecks::Indices(absl::string_view module, absl::string_view key,
                                   int64_t count) const {
  const std::string full = absl::StrCat(prefix_, module, ".");
  std::set<int64_t> indices;
  for (auto it = file_->entries().lower_bound(full);
       it != file_->entries().end() && absl::StartsWith(it->first, full); ++it) {
    const absl::string_view rest = absl::string_view(it->first).substr(full.size());
    int64_t index = -1;
    if (!absl::SimpleAtoi(rest.substr(0, rest.find('.')), &index) || index < 0) {
      return Error(absl::StatusCode::kInvalidArgument, it->first.substr(prefix_.size()),
                   "has no block index");
    }
    indices.insert(index);
  }
  const bool whole = static_cast<int64_t>(indices.size()) == count &&
                     (indices.empty() || *indices.rbegin() == count - 1);
  if (whole) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file_->path(), ": tensors \"", full, "*\" have ", indices.size(), " block indices up to ",
      indices.empty() ? -1 : *indices.rbegin(), ", ", key, " calls for 0 to ", count - 1));
}

absl::Status TensorChecks::Statistics(int64_t channels) const {
  LTX_RETURN_IF_ERROR(Shape("mean-of-means", {channels}));
  LTX_RETURN_IF_ERROR(Shape("std-of-means", {channels}));
  const auto finite = [](double value) { return std::isfinite(value); };
  const std::vector<double> means = DecodeDoubles(*Find("mean-of-means"));
  if (!std::all_of(means.begin(), means.end(), finite)) {
    return Error(absl::StatusCode::kInvalidArgument, "mean-of-means",
                 "holds a value that is not finite");
  }
  const std::vector<double> deviations = DecodeDoubles(*Find("std-of-means"));
  if (!std::all_of(deviations.begin(), deviations.end(),
                   [&](double value) { return finite(value) && value > 0.0; })) {
    return Error(absl::StatusCode::kInvalidArgument, "std-of-means",
                 "holds a value that is not finite and above 0");
  }
  return absl::OkStatus();
}

absl::Status TensorChecks::PlainWeights() const {
  WeightSet weights;
  // The set only looks: it does not outlive the file.
  LTX_RETURN_IF_ERROR(
      weights.Add(std::shared_ptr<const SafetensorsFile>(std::shared_ptr<void>(), file_), prefix_));
  for (const std::string& name : weights.Names()) {
    const DType dtype = weights.Find(name)->dtype;
    const bool codes = dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
    const bool flattened = absl::EndsWith(name, "._weight_qdata");
    if (!codes && !flattened && !absl::EndsWith(name, ".weight")) continue;
    const std::string subject =
        flattened ? absl::StrCat(name.substr(0, name.rfind("._weight_qdata")), ".weight") : name;
    LTX_ASSIGN_OR_RETURN(const StoredForm form, DetectStoredForm(weights, subject));
    if (form != StoredForm::kPlain) {
      return Error(absl::StatusCode::kUnimplemented, name,
                   absl::StrCat("is stored as ", StoredFormName(form), ", which is not supported"));
    }
  }
  return absl::OkStatus();
}

}  // namespace ltx::checkpoint
