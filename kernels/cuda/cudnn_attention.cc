#include "kernels/cuda/cudnn_attention.h"

#if !__has_include(<cudnn_frontend.h>)
#error "cuDNN's C++ headers (cudnn_frontend) are missing: run tools/install_packages.sh"
#endif
#include <cudnn_frontend.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

namespace fe = cudnn_frontend;

/// Plans kept: a request of two stages uses about a dozen forms, a server that makes clips of ten
/// sizes ten times as many. A plan is some 100 KB of host memory and code on the device.
constexpr size_t kMostPlans = 256;

enum Operand : int64_t { kQ = 1, kK, kV, kOut };

absl::Status CudnnError(absl::string_view call, absl::string_view message) {
  return absl::InternalError(absl::StrCat("cuDNN ", call, ": ", message));
}

bool IsAligned16(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

/// [batch, heads, rows, width] over rows `stride` elements apart.
std::shared_ptr<fe::graph::Tensor_attributes> AddOperand(fe::graph::Graph& graph, Operand id,
                                                         int64_t batch, int64_t heads, int64_t rows,
                                                         int64_t width, int64_t stride) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(id)
                          .set_dim({batch, heads, rows, width})
                          .set_stride({rows * stride, width, stride, 1}));
}

absl::StatusOr<cudnnHandle_t> MakeHandle() {
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS) {
    return CudnnError("cudnnCreate", cudnnGetErrorString(status));
  }
  return handle;
}

}  // namespace

struct CudnnAttention::Plan {
  fe::graph::Graph graph;
  int64_t workspace_bytes = 0;
};

absl::StatusOr<std::unique_ptr<CudnnAttention>> CudnnAttention::Create(int ordinal) {
  LTX_ASSIGN_OR_RETURN(cudnnHandle_t handle, MakeHandle());
  return absl::WrapUnique(new CudnnAttention(ordinal, handle));
}

CudnnAttention::~CudnnAttention() {
  std::thread maker;
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    maker = std::move(maker_);
  }
  if (maker.joinable()) maker.join();
  cudnnDestroy(handle_);
}

bool CudnnAttention::Takes(const AttentionTask& task) {
  constexpr int64_t kPack = 8;  // bf16 elements of 16 bytes
  const bool width = task.width == 64 || task.width == 128 || task.width == 256;
  const bool packed = task.q_stride % kPack == 0 && task.k_stride % kPack == 0 &&
                      task.v_stride % kPack == 0 && task.out_stride % kPack == 0 &&
                      IsAligned16(task.q) && IsAligned16(task.k) && IsAligned16(task.v) &&
                      IsAligned16(task.out);
  return task.bf16 && width && task.value_width == task.width && packed &&
         task.key_mask == nullptr && task.bias == nullptr && (task.window == 0 || task.causal);
}

CudnnAttention::Key CudnnAttention::KeyOf(const AttentionTask& task) {
  int32_t scale_bits;
  std::memcpy(&scale_bits, &task.scale, sizeof(scale_bits));
  return {task.batch,    task.heads,      task.kv_heads, task.queries,  task.keys,
          task.width,    task.causal,     task.window,   task.q_stride, task.k_stride,
          task.v_stride, task.out_stride, scale_bits};
}

bool CudnnAttention::HasPlanFor(const AttentionTask& task) const {
  absl::MutexLock lock(&mutex_);
  return places_.contains(KeyOf(task));
}

Preparation CudnnAttention::prepared() const {
  absl::MutexLock lock(&mutex_);
  return prepared_;
}

absl::StatusOr<std::shared_ptr<const CudnnAttention::Plan>> CudnnAttention::MakePlan(
    cudnnHandle_t handle, const AttentionTask& task) {
  auto plan = std::make_shared<Plan>();
  fe::graph::Graph& graph = plan->graph;
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto q =
      AddOperand(graph, kQ, task.batch, task.heads, task.queries, task.width, task.q_stride);
  const auto k =
      AddOperand(graph, kK, task.batch, task.kv_heads, task.keys, task.width, task.k_stride);
  const auto v =
      AddOperand(graph, kV, task.batch, task.kv_heads, task.keys, task.width, task.v_stride);
  auto options = fe::graph::SDPA_attributes().set_generate_stats(false).set_attn_scale(task.scale);
  if (task.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    if (task.window > 0) options.set_diagonal_band_left_bound(static_cast<int>(task.window));
  }
  const auto [out, stats] = graph.sdpa(q, k, v, options);
  out->set_output(true)
      .set_uid(kOut)
      .set_dim({task.batch, task.heads, task.queries, task.width})
      .set_stride({task.queries * task.out_stride, task.width, task.out_stride, 1});
  if (fe::error_t error = graph.build(handle, {fe::HeurMode_t::A}); error.is_bad()) {
    return CudnnError(
        absl::StrCat("has no plan for attention of [", task.batch, ", ", task.heads, " of ",
                     task.kv_heads, ", ", task.queries, " x ", task.keys, ", ", task.width, "]"),
        error.get_message());
  }
  if (fe::error_t error = graph.get_workspace_size(plan->workspace_bytes); error.is_bad()) {
    return CudnnError("workspace size", error.get_message());
  }
  int64_t most = most_workspace_bytes();
  while (plan->workspace_bytes > most &&
         !most_workspace_bytes_.compare_exchange_weak(most, plan->workspace_bytes)) {
  }
  return plan;
}

std::shared_ptr<const CudnnAttention::Plan> CudnnAttention::Use(const Key& key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, place->second);
  return plans_.front().second;
}

void CudnnAttention::Add(const Key& key, std::shared_ptr<const Plan> plan) {
  if (plans_.size() >= kMostPlans) {
    places_.erase(plans_.back().first);
    plans_.pop_back();
  }
  plans_.emplace_front(key, std::move(plan));
  places_[key] = plans_.begin();
}

absl::StatusOr<std::shared_ptr<const CudnnAttention::Plan>> CudnnAttention::FindPlan(
    const AttentionTask& task) {
  const Key key = KeyOf(task);
  {
    absl::MutexLock lock(&mutex_);
    if (std::shared_ptr<const Plan> plan = Use(key)) return plan;
    const auto elsewhere = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return making_ != key; };
    mutex_.Await(absl::Condition(&elsewhere));
    prepared_.attentions += 1;
    if (std::shared_ptr<const Plan> plan = Use(key)) return plan;
    const auto same = [&key](const AttentionTask& other) { return KeyOf(other) == key; };
    ahead_.erase(std::remove_if(ahead_.begin(), ahead_.end(), same), ahead_.end());
  }
  LTX_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(handle_, task));
  absl::MutexLock lock(&mutex_);
  // Asked for once more meanwhile, the thread may have it.
  if (std::shared_ptr<const Plan> other = Use(key)) return other;
  Add(key, plan);
  return plan;
}

void CudnnAttention::MakeAhead(absl::Span<const AttentionTask> tasks) {
  absl::MutexLock lock(&mutex_);
  ahead_.insert(ahead_.end(), tasks.begin(), tasks.end());
  if (!ahead_.empty() && !maker_.joinable()) {
    maker_ = std::thread([this] { MakeWhatIsAsked(); });
  }
}

void CudnnAttention::MakeWhatIsAsked() {
  // Handles are not for two threads at once. Without one of its own the thread makes nothing, and
  // Run everything.
  absl::StatusOr<cudnnHandle_t> handle = absl::InternalError("no device");
  if (cudaSetDevice(ordinal_) == cudaSuccess) handle = MakeHandle();
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto due = [&]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !ahead_.empty(); };
    mutex_.Await(absl::Condition(&due));
    if (stop_) break;
    const AttentionTask task = ahead_.front();
    ahead_.pop_front();
    const Key key = KeyOf(task);
    if (!handle.ok() || places_.contains(key)) continue;
    making_ = key;
    mutex_.Unlock();
    absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(*handle, task);
    mutex_.Lock();
    making_.reset();
    if (plan.ok() && !places_.contains(key)) Add(key, *std::move(plan));
  }
  if (handle.ok()) cudnnDestroy(*handle);
}

std::vector<std::shared_ptr<const void>> CudnnAttention::StopNoting() {
  noting_ = false;
  std::vector<std::shared_ptr<const void>> noted(noted_.begin(), noted_.end());
  noted_.clear();
  return noted;
}

absl::Status CudnnAttention::Run(CudaContext& context, const AttentionTask& task) {
  if (const cudnnStatus_t status = cudnnSetStream(handle_, context.stream());
      status != CUDNN_STATUS_SUCCESS) {
    return CudnnError("cudnnSetStream", cudnnGetErrorString(status));
  }
  LTX_ASSIGN_OR_RETURN(const std::shared_ptr<const Plan> plan, FindPlan(task));
  if (noting_) noted_.insert(plan);
  LTX_ASSIGN_OR_RETURN(const Tensor workspace, context.Workspace(plan->workspace_bytes));
  std::unordered_map<int64_t, void*> operands = {{kQ, const_cast<void*>(task.q)},
                                                 {kK, const_cast<void*>(task.k)},
                                                 {kV, const_cast<void*>(task.v)},
                                                 {kOut, task.out}};
  if (fe::error_t error = plan->graph.execute(handle_, operands, workspace.raw()); error.is_bad()) {
    return CudnnError("execute", error.get_message());
  }
  return absl::OkStatus();
}

}  // namespace ltx::cuda
