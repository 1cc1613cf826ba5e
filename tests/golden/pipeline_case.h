#ifndef LTX_TESTS_GOLDEN_PIPELINE_CASE_H_
#define LTX_TESTS_GOLDEN_PIPELINE_CASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/job_options.h"
#include "engine/pipeline/model.h"
#include "engine/sampling/noise_source.h"
#include "tests/golden/golden_case.h"

namespace ltx::golden {

/// What the cases of whole runs share: parameters, recorded noise, the run itself.

/// The error for a parameter that is missing or of another kind.
absl::Status Malformed(absl::string_view name);
absl::StatusOr<std::string> StringParam(const GoldenCase& golden, const char* name);
absl::StatusOr<double> NumberParam(const GoldenCase& golden, const char* name);
absl::StatusOr<int64_t> IntParam(const GoldenCase& golden, const char* name);
absl::StatusOr<std::vector<int64_t>> IntListParam(const GoldenCase& golden, const char* name);

/// The set in `folder`, which does not say of what kind it is.
absl::StatusOr<std::unique_ptr<pipeline::Model>> LoadModel(const std::string& folder,
                                                           checkpoint::ModelKind kind,
                                                           Device* device, DType compute_dtype);

/// Prompt, size, length, rate and seed of a case.
absl::StatusOr<pipeline::GenerationRequest> RequestOf(const GoldenCase& golden);

/// Answers each draw with an input of the case: `name` gives the input's name and which row of it
/// (all of it if it has a single one).
class RecordedNoise final : public sampling::NoiseSource {
 public:
  using Name = std::function<std::pair<std::string, int64_t>(const sampling::NoiseDraw&)>;
  RecordedNoise(const GoldenCase* golden, Name name) : golden_(golden), name_(std::move(name)) {}

  absl::StatusOr<Tensor> Draw(Device& device, const sampling::NoiseDraw& draw, const Shape& shape,
                              DType dtype) override;

 private:
  const GoldenCase* const golden_;
  const Name name_;
};

struct FinishedRun {
  pipeline::GenerationResult result;
  /// f32 [F, H, W, 3] in [0, 1]; undefined without a picture.
  Tensor frames;
};
absl::StatusOr<FinishedRun> RunJob(const pipeline::Model& model,
                                   const pipeline::GenerationRequest& request,
                                   const pipeline::JobOptions& options);

/// Mean and standard deviation (n - 1) of every `stride`-th value of [begin, end).
struct Moments {
  float mean = 0, std = 0;
};
Moments MomentsOf(const float* begin, const float* end, int64_t stride);

}  // namespace ltx::golden

#endif  // LTX_TESTS_GOLDEN_PIPELINE_CASE_H_
