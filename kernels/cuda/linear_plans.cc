#include "kernels/cuda/linear_plans.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/compare.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/philox_normals.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// What NVIDIA recommends for Hopper; smaller GPUs need less and ask for less.
constexpr size_t kMaxWorkspace = size_t{32} << 20;
/// Proposals asked for: cuBLASLt 13 has eight for a large product, and for the transformer's widest
/// (4096 to 16384, with GELU) the last two are the best by 3 %.
constexpr int kCandidates = 8;
/// Timed runs of each in a row, after the one that shows its result. They take turns several times
/// and the best turn counts, since the clock falls within some milliseconds of full load.
constexpr int kTimedRuns = 2;
constexpr int kTurns = 2;
/// Multiply-adds below which the heuristic's first proposal is taken unseen. Some ten microseconds
/// of arithmetic: what is smaller (sound, short prompts) is bound by reading its weights.
constexpr double kWorthTuning = 4e9;
/// Different values among the operands of trials, which repeat: enough that every row of a product
/// has its own (a row has up to 16384), and that the clock falls as it does with real ones.
constexpr int64_t kNoiseValues = int64_t{1} << 20;
/// Shapes kept. A server sees some dozens; a stream of ever new lengths must not grow without end.
constexpr size_t kMaxPlans = 2048;

cudaDataType_t DataType(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

cublasLtEpilogue_t EpilogueOf(LinearProblem::Epilogue epilogue) {
  switch (epilogue) {
    case LinearProblem::Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case LinearProblem::Epilogue::kGeluTanh:
      return CUBLASLT_EPILOGUE_GELU;
    case LinearProblem::Epilogue::kGeluTanhBias:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case LinearProblem::Epilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

int64_t ResultBytes(const LinearProblem& problem) {
  return problem.rows * problem.out * SizeOf(problem.result_dtype);
}

bool HasBias(LinearProblem::Epilogue epilogue) {
  return epilogue == LinearProblem::Epilogue::kBias ||
         epilogue == LinearProblem::Epilogue::kGeluTanhBias;
}

/// A cuBLASLt descriptor that goes with its owner.
template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Handle get() const { return handle_; }
  Handle* put() { return &handle_; }

 private:
  Handle handle_ = nullptr;
};

using Layout = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

/// Two events that go with their owner.
class Stopwatch {
 public:
  Stopwatch() = default;
  ~Stopwatch() {
    for (cudaEvent_t event : events_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  absl::Status Create() {
    for (cudaEvent_t& event : events_) LTX_RETURN_IF_CUDA_ERROR(cudaEventCreate(&event));
    return absl::OkStatus();
  }
  absl::Status Start(cudaStream_t stream) {
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(events_[0], stream));
    return absl::OkStatus();
  }
  /// Waits; milliseconds since Start.
  absl::StatusOr<float> Stop(cudaStream_t stream) {
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(events_[1], stream));
    LTX_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(events_[1]));
    float milliseconds = 0.0f;
    LTX_RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
    return milliseconds;
  }

 private:
  std::array<cudaEvent_t, 2> events_{};
};

/// `count` values that look like a model's, normals over and over again.
absl::StatusOr<Tensor> Noise(CudaContext* context, int64_t count, DType dtype) {
  LTX_ASSIGN_OR_RETURN(Tensor noise, context->Workspace(count * SizeOf(dtype)));
  const int64_t distinct = std::min(count, kNoiseValues);
  LTX_ASSIGN_OR_RETURN(const Tensor normals,
                       context->Allocate({distinct}, DType::kF32, MemoryOwner::kWorkspace));
  PhiloxTask draw;
  draw.out = normals.raw();
  draw.count = distinct;
  draw.multiprocessors = context->properties().multiProcessorCount;
  draw.threads_per_multiprocessor = context->properties().maxThreadsPerMultiProcessor;
  LTX_RETURN_IF_CUDA_ERROR(LaunchPhiloxNormals(draw, context->stream()));
  LaunchCast(normals.raw(), DType::kF32, noise.raw(), dtype, distinct, context->stream());
  auto* const bytes = noise.data<uint8_t>();
  const int64_t total = count * SizeOf(dtype);
  for (int64_t done = distinct * SizeOf(dtype); done < total; done *= 2) {
    LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(bytes + done, bytes,
                                             static_cast<size_t>(std::min(done, total - done)),
                                             cudaMemcpyDeviceToDevice, context->stream()));
  }
  return noise;
}

}  // namespace

/// One problem as cuBLASLt wants it: the row-major y = x W^T is the column-major y^T = W x^T.
class LinearPlans::Plan : public ProductChoice {
 public:
  explicit Plan(const LinearProblem& problem) : problem(problem) {}

  const LinearProblem problem;
  Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
  Layout weight;
  Layout x;
  Layout y;
  /// What Run takes first; the others are yet to be tried.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates;

  bool has_others() const { return candidates.size() > 1; }
  std::optional<int64_t> workspace_bytes() const {
    if (candidates.empty()) return std::nullopt;
    return static_cast<int64_t>(candidates.front().workspaceSize);
  }
  absl::Status SetBias(const void* bias) const {
    if (!HasBias(problem.epilogue)) return absl::OkStatus();
    return CublasStatus(cublasLtMatmulDescSetAttribute(
                            product.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
                        "cublasLtMatmulDescSetAttribute");
  }
};

LinearPlans::LinearPlans(CudaContext* context) : context_(context) {}
LinearPlans::~LinearPlans() = default;

absl::StatusOr<std::unique_ptr<LinearPlans::Plan>> LinearPlans::MakePlan(
    const LinearProblem& problem, const void* bias) const {
  auto plan = std::make_unique<Plan>(problem);
  LTX_RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulDescCreate(plan->product.put(), CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return CublasStatus(
        cublasLtMatmulDescSetAttribute(plan->product.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
  };
  LTX_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  LTX_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(problem.epilogue)));
  if (HasBias(problem.epilogue)) {
    LTX_RETURN_IF_ERROR(plan->SetBias(bias));
    LTX_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, DataType(problem.dtype)));
  }
  const auto rows = static_cast<uint64_t>(problem.rows);
  const auto in = static_cast<uint64_t>(problem.in);
  const auto out = static_cast<uint64_t>(problem.out);
  const cudaDataType_t type = DataType(problem.dtype);
  LTX_RETURN_IF_CUBLAS_ERROR(
      cublasLtMatrixLayoutCreate(plan->weight.put(), type, in, out, problem.in));
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutCreate(plan->x.put(), type, in, rows, problem.in));
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutCreate(
      plan->y.put(), DataType(problem.result_dtype), out, rows, problem.out));

  Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceCreate(preference.put()));
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceSetAttribute(
      preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kMaxWorkspace,
      sizeof(kMaxWorkspace)));
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceSetAttribute(
      preference.get(), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &problem.x_alignment,
      sizeof(problem.x_alignment)));
  plan->candidates.resize(kCandidates);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context_->cublas_lt(), plan->product.get(), plan->weight.get(), plan->x.get(), plan->y.get(),
      plan->y.get(), preference.get(), kCandidates, plan->candidates.data(), &found);
  plan->candidates.resize(status == CUBLAS_STATUS_SUCCESS ? found : 0);
  // No algorithm is an answer, kept like any other.
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
    LTX_RETURN_IF_ERROR(CublasStatus(status, "cublasLtMatmulAlgoGetHeuristic"));
  }
  if (plan->has_others() && problem.work() < kWorthTuning) plan->candidates.resize(1);
  return plan;
}

absl::Status LinearPlans::RunCandidate(const Plan& plan, size_t candidate,
                                       const Operands& operands) {
  const cublasLtMatmulHeuristicResult_t& chosen = plan.candidates[candidate];
  LTX_ASSIGN_OR_RETURN(const Tensor workspace,
                       context_->Workspace(static_cast<int64_t>(chosen.workspaceSize)));
  const float one = 1.0f;
  const float zero = 0.0f;
  LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmul(
      context_->cublas_lt(), plan.product.get(), &one, operands.weight, plan.weight.get(),
      operands.x, plan.x.get(), &zero, operands.y, plan.y.get(), operands.y, plan.y.get(),
      &chosen.algo, workspace.raw(), chosen.workspaceSize, context_->stream()));
  return absl::OkStatus();
}

absl::Status LinearPlans::Tune(Plan* plan) {
  const LinearProblem& problem = plan->problem;
  const int64_t result_bytes = ResultBytes(problem);
  LTX_ASSIGN_OR_RETURN(const Tensor expected, context_->Workspace(result_bytes));
  LTX_ASSIGN_OR_RETURN(const Tensor result, context_->Workspace(result_bytes));
  LTX_ASSIGN_OR_RETURN(const Tensor x, Noise(context_, problem.rows * problem.in, problem.dtype));
  LTX_ASSIGN_OR_RETURN(const Tensor weight,
                       Noise(context_, problem.out * problem.in, problem.dtype));
  LTX_ASSIGN_OR_RETURN(const Tensor bias, Noise(context_, problem.out, problem.dtype));
  LTX_ASSIGN_OR_RETURN(const Tensor flag,
                       context_->Allocate({kCandidates}, DType::kI32, MemoryOwner::kWorkspace));
  LTX_RETURN_IF_CUDA_ERROR(
      cudaMemsetAsync(flag.raw(), 0, static_cast<size_t>(flag.num_bytes()), context_->stream()));
  LTX_RETURN_IF_ERROR(plan->SetBias(bias.raw()));
  Stopwatch watch;
  LTX_RETURN_IF_ERROR(watch.Create());
  LTX_RETURN_IF_ERROR(RunCandidate(*plan, 0, {x.raw(), weight.raw(), expected.raw()}));

  const Operands trial{x.raw(), weight.raw(), result.raw()};
  std::vector<float> times(plan->candidates.size(), 0.0f);
  for (size_t i = 0; i < plan->candidates.size(); ++i) {
    // Poisoned, so that an algorithm that does nothing does not pass for the last one.
    LTX_RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(result.raw(), 0xff, static_cast<size_t>(result_bytes), context_->stream()));
    LTX_RETURN_IF_ERROR(RunCandidate(*plan, i, trial));
    LaunchFindDifference(expected.raw(), result.raw(), result_bytes, flag.data<int32_t>() + i,
                         context_->stream());
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < plan->candidates.size(); ++i) {
      LTX_RETURN_IF_ERROR(watch.Start(context_->stream()));
      for (int run = 0; run < kTimedRuns; ++run) {
        LTX_RETURN_IF_ERROR(RunCandidate(*plan, i, trial));
      }
      LTX_ASSIGN_OR_RETURN(const float time, watch.Stop(context_->stream()));
      times[i] = turn == 0 ? time : std::min(times[i], time);
    }
  }
  std::array<int32_t, kCandidates> differs{};
  LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(differs.data(), flag.raw(), sizeof(differs),
                                           cudaMemcpyDeviceToHost, context_->stream()));
  LTX_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(context_->stream()));
  size_t best = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (differs[i] == 0 && times[i] < times[best]) best = i;
  }
  std::swap(plan->candidates[0], plan->candidates[best]);
  plan->changed = best != 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> LinearPlans::TryOthers() {
  if (untried_.empty()) return false;
  const std::shared_ptr<Plan> plan = std::move(untried_.front());
  untried_.pop_front();
  const absl::Status status = Tune(plan.get());
  plan->candidates.resize(1);
  if (!absl::IsResourceExhausted(status)) LTX_RETURN_IF_ERROR(status);
  Remember(*plan);
  return true;
}

std::vector<std::shared_ptr<const ProductChoice>> LinearPlans::StopNoting() {
  noting_ = false;
  std::vector<std::shared_ptr<const ProductChoice>> noted(noted_.begin(), noted_.end());
  noted_.clear();
  return noted;
}

std::optional<int64_t> LinearPlans::WorkspaceBytesOf(LinearProblem problem) {
  problem.x_alignment = kBestAlignment;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = workspaces_.find(problem);
    if (found != workspaces_.end()) return found->second;
  }
  // Aligned like a tensor; nothing is read from there.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const void* const bias = reinterpret_cast<const void*>(uintptr_t{512});
  const absl::StatusOr<std::unique_ptr<Plan>> plan = MakePlan(problem, bias);
  std::optional<int64_t> bytes;
  if (plan.ok()) bytes = (*plan)->workspace_bytes();
  absl::MutexLock lock(&mutex_);
  if (workspaces_.size() >= kMaxPlans && !workspaces_.contains(problem)) workspaces_.clear();
  // What Run has found meanwhile is better.
  return workspaces_.try_emplace(problem, bytes).first->second;
}

void LinearPlans::Remember(const Plan& plan) {
  LinearProblem problem = plan.problem;
  problem.x_alignment = kBestAlignment;
  absl::MutexLock lock(&mutex_);
  if (workspaces_.size() >= kMaxPlans) workspaces_.clear();
  workspaces_[problem] = plan.workspace_bytes();
}

absl::Status LinearPlans::Run(const LinearProblem& problem, const void* x, const void* weight,
                              const void* bias, void* y) {
  auto found = plans_.find(problem);
  if (found == plans_.end()) {
    LTX_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, MakePlan(problem, bias));
    Remember(*plan);
    if (plans_.size() >= kMaxPlans) {
      plans_.clear();
      untried_.clear();
    }
    if (plan->has_others()) untried_.push_back(plan);
    found = plans_.emplace(problem, std::move(plan)).first;
  }
  const std::shared_ptr<Plan>& plan = found->second;
  if (plan->candidates.empty()) {
    return absl::UnimplementedError(absl::StrCat("cuBLASLt has no algorithm for [", problem.rows,
                                                 ", ", problem.in, "] x [", problem.out, ", ",
                                                 problem.in, "]^T of ", DTypeName(problem.dtype)));
  }
  if (noting_ && plan->has_others()) noted_.insert(plan);
  LTX_RETURN_IF_ERROR(plan->SetBias(bias));
  return RunCandidate(*plan, 0, {x, weight, y});
}

}  // namespace ltx::cuda
