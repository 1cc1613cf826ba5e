#include "kernels/cuda/linear_plans.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/compare.h"
#include "kernels/cuda/cuda_error.h"
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
/// of arithmetic: what is smaller (sound, short prompts) is bound by reading its weights, while
/// trying eight algorithms costs 10 to 20 ms, most of it for loading their code.
constexpr double kWorthTuning = 4e9;
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

/// Whether the first use of a problem compares algorithms.
bool IsTuned(const LinearProblem& problem, size_t candidates) {
  return candidates > 1 && problem.work() >= kWorthTuning;
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

}  // namespace

/// One problem as cuBLASLt wants it: the row-major y = x W^T is the column-major y^T = W x^T.
class LinearPlans::Plan {
 public:
  Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
  Layout weight;
  Layout x;
  Layout y;
  /// Best first.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates;
};

LinearPlans::LinearPlans(CudaContext* context) : context_(context) {}
LinearPlans::~LinearPlans() = default;

absl::StatusOr<std::unique_ptr<LinearPlans::Plan>> LinearPlans::MakePlan(
    const LinearProblem& problem, const void* bias) const {
  auto plan = std::make_unique<Plan>();
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
    LTX_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
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

absl::Status LinearPlans::Tune(const LinearProblem& problem, const Operands& operands, Plan* plan) {
  const int64_t bytes = ResultBytes(problem);
  const absl::StatusOr<Tensor> scratch = context_->Workspace(bytes);
  // Without memory for a second result the first proposal stands.
  if (!scratch.ok()) return absl::OkStatus();
  LTX_ASSIGN_OR_RETURN(const Tensor flag,
                       context_->Allocate({kCandidates}, DType::kI32, MemoryOwner::kWorkspace));
  LTX_RETURN_IF_CUDA_ERROR(
      cudaMemsetAsync(flag.raw(), 0, static_cast<size_t>(flag.num_bytes()), context_->stream()));
  Stopwatch watch;
  LTX_RETURN_IF_ERROR(watch.Create());
  LTX_RETURN_IF_ERROR(RunCandidate(*plan, 0, operands));

  const Operands trial{operands.x, operands.weight, scratch->raw()};
  std::vector<float> times(plan->candidates.size(), 0.0f);
  for (size_t i = 0; i < plan->candidates.size(); ++i) {
    // Poisoned, so that an algorithm that does nothing does not pass for the last one.
    LTX_RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(scratch->raw(), 0xff, static_cast<size_t>(bytes), context_->stream()));
    LTX_RETURN_IF_ERROR(RunCandidate(*plan, i, trial));
    LaunchFindDifference(operands.y, scratch->raw(), bytes, flag.data<int32_t>() + i,
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
  plan->candidates.resize(1);
  return absl::OkStatus();
}

LinearPlans::Needs LinearPlans::NeedsOf(LinearProblem problem) {
  problem.x_alignment = kBestAlignment;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = needs_.find(problem);
    if (found != needs_.end()) return found->second;
  }
  // Aligned like a tensor; nothing is read from there.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const void* const bias = reinterpret_cast<const void*>(uintptr_t{512});
  const absl::StatusOr<std::unique_ptr<Plan>> plan = MakePlan(problem, bias);
  Needs needs;
  if (plan.ok() && !(*plan)->candidates.empty()) {
    needs.workspace_bytes = 0;
    if (IsTuned(problem, (*plan)->candidates.size())) {
      needs.trial_bytes = ResultBytes(problem) + kCandidates * SizeOf(DType::kI32);
    }
    for (const cublasLtMatmulHeuristicResult_t& candidate : (*plan)->candidates) {
      needs.workspace_bytes =
          std::max(*needs.workspace_bytes, static_cast<int64_t>(candidate.workspaceSize));
      if (needs.trial_bytes == 0) break;
    }
  }
  absl::MutexLock lock(&mutex_);
  if (needs_.size() >= kMaxPlans && !needs_.contains(problem)) needs_.clear();
  // What Run has found meanwhile is better.
  return needs_.try_emplace(problem, needs).first->second;
}

Preparation LinearPlans::prepared() const {
  absl::MutexLock lock(&mutex_);
  return prepared_;
}

void LinearPlans::Remember(LinearProblem problem, const Plan& plan, bool chosen) {
  problem.x_alignment = kBestAlignment;
  absl::MutexLock lock(&mutex_);
  if (needs_.size() >= kMaxPlans) needs_.clear();
  Needs& needs = needs_[problem];
  needs = {};
  if (!plan.candidates.empty()) {
    needs.workspace_bytes = static_cast<int64_t>(plan.candidates.front().workspaceSize);
  }
  if (!chosen) return;
  prepared_.products += 1;
  prepared_.product_work += problem.work();
}

absl::Status LinearPlans::Run(const LinearProblem& problem, const void* x, const void* weight,
                              const void* bias, void* y) {
  const Operands operands{x, weight, y};
  auto found = plans_.find(problem);
  if (found == plans_.end()) {
    LTX_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(problem, bias));
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    LTX_RETURN_IF_CUDA_ERROR(cudaStreamIsCapturing(context_->stream(), &capture));
    const bool chooses =
        IsTuned(problem, plan->candidates.size()) && capture == cudaStreamCaptureStatusNone;
    if (chooses) LTX_RETURN_IF_ERROR(Tune(problem, operands, plan.get()));
    Remember(problem, *plan, chooses);
    if (plans_.size() >= kMaxPlans) plans_.clear();
    found = plans_.emplace(problem, std::move(plan)).first;
  }
  const Plan& plan = *found->second;
  if (plan.candidates.empty()) {
    return absl::UnimplementedError(absl::StrCat("cuBLASLt has no algorithm for [", problem.rows,
                                                 ", ", problem.in, "] x [", problem.out, ", ",
                                                 problem.in, "]^T of ", DTypeName(problem.dtype)));
  }
  if (HasBias(problem.epilogue)) {
    LTX_RETURN_IF_CUBLAS_ERROR(cublasLtMatmulDescSetAttribute(
        plan.product.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
  }
  return RunCandidate(plan, 0, operands);
}

}  // namespace ltx::cuda
