#ifndef LTX_TESTS_GOLDEN_GOLDEN_CASE_H_
#define LTX_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_loader.h"
#include "kernels/device.h"
#include "nlohmann/json.hpp"

namespace ltx::golden {

/// One golden case: a safetensors file with inputs, weights and the outputs of the reference.
/// Metadata: component, about, config, params, tolerance, optional weights_file (path of a file or
/// folder, relative to the case).
class GoldenCase {
 public:
  /// INVALID_ARGUMENT if the file is not a well-formed case.
  static absl::StatusOr<GoldenCase> Load(const std::string& path);

  const std::string& path() const { return file_->path(); }
  /// The case file's folder, against which relative paths in `params` resolve.
  std::string folder() const;
  const std::string& component() const { return component_; }
  /// The checkpoint's own config ({} if absent).
  const nlohmann::json& config() const { return config_; }
  const nlohmann::json& params() const { return params_; }
  const nlohmann::json& tolerance() const { return tolerance_; }
  const checkpoint::SafetensorsFile& file() const { return *file_; }

  /// Weights under their official names: the "weights/" tensors of this file, and those of
  /// weights_file (its "weights/" tensors, or all of them in a file that has none). Empty if
  /// weights_file is a folder or the case names a model set in params.models.
  const checkpoint::WeightSet& weights() const { return weights_; }
  /// The file or folder of weights_file, resolved; "" if the case names none.
  const std::string& weights_path() const { return weights_path_; }
  /// A relative path of `params`, resolved against the case's folder.
  std::string Resolve(absl::string_view relative_path) const;

  bool HasInput(absl::string_view name) const;   ///< `in/<name>`
  bool HasOutput(absl::string_view name) const;  ///< `out/<name>`
  /// Names after "in/" (or "out/"), sorted.
  std::vector<std::string> InputNames() const;
  std::vector<std::string> OutputNames() const;
  absl::StatusOr<Shape> InputShape(absl::string_view name) const;
  absl::StatusOr<DType> InputDType(absl::string_view name) const;

  // The accessors below give NOT_FOUND for an absent input and INVALID_ARGUMENT for a dtype that
  // does not fit, naming file and tensor.

  /// `in/<name>` on the device. Float inputs become `dtype`; integers become kI32, u8 and bool kU8.
  absl::StatusOr<Tensor> Input(Device& device, absl::string_view name,
                               DType dtype = DType::kF32) const;
  /// `in/<name>` on the host, converted element by element.
  absl::StatusOr<std::vector<float>> InputFloats(absl::string_view name) const;
  absl::StatusOr<std::vector<double>> InputDoubles(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> InputInts(absl::string_view name) const;
  /// The stored bytes of a tensor whose elements have one byte (u8, bool, i8, FP8 codes).
  absl::StatusOr<std::vector<uint8_t>> InputBytes(absl::string_view name) const;

 private:
  absl::StatusOr<const checkpoint::SafetensorsFile::Entry*> FindInput(absl::string_view name) const;
  absl::Status LoadWeights();

  std::shared_ptr<const checkpoint::SafetensorsFile> file_;
  std::string component_;
  nlohmann::json config_, params_, tolerance_;
  std::string weights_path_;
  checkpoint::WeightSet weights_;
};

/// True for a file that holds a model and no case: no `component`, or "weights", or "*.weights".
bool IsModelFile(const checkpoint::SafetensorsFile& file);

/// What our code computed for a case. A value is held as doubles with its shape and dtype class.
class GoldenOutputs {
 public:
  enum class Kind { kFloat, kInteger };
  struct Value {
    Kind kind = Kind::kFloat;
    Shape shape;
    std::vector<double> elements;
    /// By how much a bf16 run may be off; see SetGridInts.
    double bf16_slack = 0.0;
  };

  /// Stores `out/<name>` from a device tensor (any dtype the device can download).
  absl::Status Set(Device& device, absl::string_view name, const Tensor& tensor);
  void SetFloats(absl::string_view name, const Shape& shape, absl::Span<const float> values);
  void SetDoubles(absl::string_view name, const Shape& shape, absl::Span<const double> values);
  void SetInts(absl::string_view name, const Shape& shape, absl::Span<const int64_t> values);
  /// Floats that were moved to a grid with this step: where they were computed in bf16, a value
  /// close to the edge may land on the neighbouring point.
  void SetGridInts(absl::string_view name, const Shape& shape, absl::Span<const int64_t> values,
                   int64_t step);

  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

  /// The values were computed in bf16 where the case was in f32: what is not exact is
  /// judged by this rel_l2 if it is wider than the case's own bound, and by no max_abs.
  void JudgeAsBFloat16(double rel_l2) { bf16_rel_l2_ = rel_l2; }
  std::optional<double> bf16_rel_l2() const { return bf16_rel_l2_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
  std::optional<double> bf16_rel_l2_;
};

/// Where a runner finds things outside the case.
struct GoldenContext {
  Device* device = nullptr;
  /// Folder of model sets: `params.models` names one below it.
  std::string models_dir;
  /// Cases in f32 run in bf16 where their component is a whole model.
  bool f32_as_bf16 = false;
};

/// What a case in `dtype` is computed in; tells `outputs` if that is not the case's own dtype.
DType ComputeDType(const GoldenContext& context, DType dtype, GoldenOutputs* outputs);

/// Runs our code for one case. Only outputs the case holds need be set; extra ones are ignored.
using ComponentRunner =
    std::function<absl::Status(const GoldenCase&, const GoldenContext&, GoldenOutputs*)>;

/// Dotted component name -> runner. Each area adds its own (Register<Area>Components).
using ComponentRegistry = std::map<std::string, ComponentRunner, std::less<>>;

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_GOLDEN_CASE_H_
