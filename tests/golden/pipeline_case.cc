#include "tests/golden/pipeline_case.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/model_set.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

namespace ltx::golden {

using nlohmann::json;
using pipeline::GenerationJob;
using pipeline::GenerationRequest;
using pipeline::GenerationResult;
using pipeline::JobOptions;
using pipeline::Model;
using sampling::NoiseDraw;

absl::Status Malformed(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("params.", name, " is missing or malformed"));
}

absl::StatusOr<std::string> StringParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_string()) return Malformed(name);
  return it->get<std::string>();
}

absl::StatusOr<double> NumberParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_number()) return Malformed(name);
  return it->get<double>();
}

absl::StatusOr<int64_t> IntParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_number_integer()) return Malformed(name);
  return it->get<int64_t>();
}

absl::StatusOr<std::vector<int64_t>> IntListParam(const GoldenCase& golden, const char* name) {
  const auto it = golden.params().find(name);
  if (it == golden.params().end() || !it->is_array()) return Malformed(name);
  std::vector<int64_t> list;
  for (const json& value : *it) {
    if (!value.is_number_integer()) return Malformed(name);
    list.push_back(value.get<int64_t>());
  }
  return list;
}

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& folder,
                                                 checkpoint::ModelKind kind, Device* device,
                                                 DType compute_dtype) {
  LTX_ASSIGN_OR_RETURN(const checkpoint::ModelSet set, checkpoint::ModelSet::Open(folder));
  pipeline::ModelOptions options;
  options.compute_dtype = compute_dtype;
  options.kind = kind;
  return Model::Load(device, set, options);
}

absl::StatusOr<GenerationRequest> RequestOf(const GoldenCase& golden) {
  GenerationRequest request;
  LTX_ASSIGN_OR_RETURN(request.prompt, StringParam(golden, "prompt"));
  LTX_ASSIGN_OR_RETURN(request.height, IntParam(golden, "height"));
  LTX_ASSIGN_OR_RETURN(request.width, IntParam(golden, "width"));
  LTX_ASSIGN_OR_RETURN(request.num_frames, IntParam(golden, "num_frames"));
  LTX_ASSIGN_OR_RETURN(const double rate, NumberParam(golden, "frame_rate"));
  LTX_ASSIGN_OR_RETURN(request.frame_rate, pipeline::FrameRate::FromDouble(rate));
  LTX_ASSIGN_OR_RETURN(const int64_t seed, IntParam(golden, "seed"));
  request.seed = static_cast<uint64_t>(seed);
  request.noise_generator = pipeline::NoiseGenerator::kTorchCpu;
  return request;
}

absl::StatusOr<Tensor> RecordedNoise::Draw(Device& device, const NoiseDraw& draw,
                                           const Shape& shape, DType dtype) {
  const auto [name, row] = name_(draw);
  if (dtype == DType::kF64) {
    LTX_ASSIGN_OR_RETURN(const Shape recorded, golden_->InputShape(name));
    LTX_ASSIGN_OR_RETURN(const std::vector<double> values, golden_->InputDoubles(name));
    if (recorded == shape) return TensorFromDoubles(device, values, shape);
    return absl::InvalidArgumentError(absl::StrCat("in/", name, " is ", recorded.ToString(),
                                                   ", the run draws ", shape.ToString()));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor all, golden_->Input(device, name, dtype));
  if (row >= all.dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("in/", name, " has no draw ", row));
  }
  LTX_ASSIGN_OR_RETURN(const Tensor drawn, all.Rows(row, row + 1));
  if (drawn.shape() != shape) {
    return absl::InvalidArgumentError(absl::StrCat("in/", name, " is ", drawn.shape().ToString(),
                                                   ", the run draws ", shape.ToString()));
  }
  return drawn;
}

absl::StatusOr<FinishedRun> RunJob(const Model& model, const GenerationRequest& request,
                                   const JobOptions& options) {
  std::vector<Tensor> parts;
  JobOptions watched = options;
  watched.observer = [&](absl::string_view name, const Tensor& x) {
    if (name == "frames") parts.push_back(x);
    if (options.observer) options.observer(name, x);
  };
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<GenerationJob> job,
                       GenerationJob::Create(&model, request, watched));
  while (!job->done()) LTX_RETURN_IF_ERROR(job->Advance().status());
  FinishedRun run;
  LTX_ASSIGN_OR_RETURN(run.result, job->TakeResult());
  if (!parts.empty()) {
    LTX_ASSIGN_OR_RETURN(run.frames, model.device().Concat(parts, 0));
  }
  return run;
}

Moments MomentsOf(const float* begin, const float* end, int64_t stride) {
  double sum = 0, squares = 0, count = 0;
  for (const float* x = begin; x < end; x += stride) sum += *x, count += 1;
  const double mean = sum / count;
  for (const float* x = begin; x < end; x += stride) squares += (*x - mean) * (*x - mean);
  return {static_cast<float>(mean), static_cast<float>(std::sqrt(squares / (count - 1)))};
}

}  // namespace ltx::golden
