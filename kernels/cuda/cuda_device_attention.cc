#include <vector>

#include "absl/hash/hash.h"
#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/op_scratch.h"
#include "kernels/cuda/product_attention.h"
#include "kernels/cuda/rope_kernels.h"
#include "kernels/op_check.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

const void* DataOf(const Columns& columns) {
  return columns.tensor.data<uint8_t>() + columns.begin * SizeOf(columns.tensor.dtype());
}

RopeView ViewOf(const RopeTable& rope) {
  RopeView view;
  if (!rope.defined()) return view;
  view.cos = rope.cos.raw();
  view.sin = rope.sin.raw();
  const Shape& shape = rope.cos.shape();
  const bool split = rope.kind == RopeTable::Kind::kSplit;
  view.kind = split ? RopeView::Kind::kSplit : RopeView::Kind::kInterleaved;
  view.token_stride = shape.dim(-1);
  const int64_t plane = shape.dim(-2) * shape.dim(-1);
  // A batch or head axis of extent 1 serves all.
  if (split && shape.dim(1) > 1) view.head_stride = plane;
  if (shape.dim(0) > 1) view.batch_stride = (split ? shape.dim(1) : 1) * plane;
  return view;
}

NormRopeTask TaskFor(const Columns& x, const Columns& y, int64_t heads) {
  NormRopeTask task;
  task.x = DataOf(x);
  task.y = const_cast<void*>(DataOf(y));
  task.batch = x.tensor.dim(0);
  task.tokens = x.tensor.dim(1);
  task.heads = heads;
  task.head_width = x.width / heads;
  task.x_stride = x.pitch();
  task.y_stride = y.pitch();
  task.bf16 = x.tensor.dtype() == DType::kBF16;
  return task;
}

NormRopeTask TaskFor(const Columns& x, const Columns& y, const NormRopeOptions& options) {
  NormRopeTask task = TaskFor(x, y, options.heads);
  task.norm = options.span == NormRopeOptions::Span::kPerHead ? NormRopeTask::Norm::kPerHead
                                                              : NormRopeTask::Norm::kFullWidth;
  task.weight = options.weight.raw();
  task.base = options.one_plus_weight ? 1.0f : 0.0f;
  task.epsilon = options.epsilon;
  task.rope = ViewOf(options.rope);
  return task;
}

AttentionTask TaskFor(const Columns& q, const Columns& k, const Columns& v, const Tensor& out,
                      const AttentionOptions& options) {
  AttentionTask task;
  task.q = DataOf(q);
  task.k = DataOf(k);
  task.v = DataOf(v);
  task.out = out.raw();
  task.batch = q.tensor.dim(0);
  task.heads = options.heads;
  task.kv_heads = options.kv_heads;
  task.queries = q.tensor.dim(1);
  task.keys = k.tensor.dim(1);
  task.width = q.width / options.heads;
  task.value_width = v.width / options.kv_heads;
  task.q_stride = q.pitch();
  task.k_stride = k.pitch();
  task.v_stride = v.pitch();
  task.out_stride = out.dim(2);
  task.bf16 = q.tensor.dtype() == DType::kBF16;
  task.scale = options.scale;
  task.causal = options.causal;
  task.window = options.window;
  task.key_mask = options.key_mask.data<uint8_t>();
  task.bias = options.bias.data<float>();
  if (options.bias.defined()) {
    task.bias_query_stride = options.bias.dim(2) == 1 ? 0 : task.keys;
    task.bias_batch_stride = options.bias.dim(0) == 1 ? 0 : options.bias.dim(2) * task.keys;
  }
  return task;
}

}  // namespace

absl::StatusOr<Tensor> CudaDevice::NormRope(const Tensor& x, const NormRopeOptions& options) {
  LTX_RETURN_IF_ERROR(CheckNormRope("NormRope", x, options));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  LTX_RETURN_IF_CUDA_ERROR(LaunchNormRope(TaskFor(x, y, options), context_->stream()));
  return y;
}

absl::StatusOr<Tensor> CudaDevice::Rope(const Tensor& x, int64_t heads, const RopeTable& rope) {
  LTX_RETURN_IF_ERROR(CheckRope(x, heads, rope));
  LTX_ASSIGN_OR_RETURN(Tensor y, NewLike(x));
  NormRopeTask task = TaskFor(x, y, heads);
  task.rope = ViewOf(rope);
  LTX_RETURN_IF_CUDA_ERROR(LaunchNormRope(task, context_->stream()));
  return y;
}

absl::StatusOr<Tensor> CudaDevice::Attention(const Columns& q, const Columns& k, const Columns& v,
                                             const AttentionOptions& options) {
  LTX_RETURN_IF_ERROR(CheckAttention(q, k, v, options));
  const int64_t out_width = v.width / options.kv_heads * options.heads;
  LTX_ASSIGN_OR_RETURN(Tensor out, Allocate(Shape({q.tensor.dim(0), q.tensor.dim(1), out_width}),
                                            q.tensor.dtype(), MemoryOwner::kActivations));
  if (out.num_elements() == 0) return out;
  const AttentionTask task = TaskFor(q, k, v, out, options);
  if (task.keys == 0) {
    // Queries that see no key yield zeros.
    LTX_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(out.raw(), 0, out.num_bytes(), context_->stream()));
    return out;
  }
  if (CudnnAttention::Takes(task)) {
    LTX_RETURN_IF_ERROR(cudnn_attention_->Run(*context_, task));
  } else {
    LTX_RETURN_IF_ERROR(RunProductAttention(*context_, *batched_products_, task));
  }
  return out;
}

namespace {

/// As well aligned as the operand, whose tensor begins at a boundary of the pool.
const void* AddressOf(const AttentionSize::Rows& rows, DType dtype) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody looks behind it.
  return reinterpret_cast<const void*>(rows.begin * SizeOf(dtype));
}

AttentionTask TaskFor(const AttentionSize& size) {
  // Stand for operands that are there.
  static constexpr uint8_t kMask = 0;
  static constexpr float kBias = 0.0f;
  AttentionTask task;
  task.batch = size.batch;
  task.heads = size.heads;
  task.kv_heads = size.kv_heads;
  task.queries = size.queries;
  task.keys = size.keys;
  task.width = size.head_dim;
  task.value_width = size.value_dim;
  task.q = AddressOf(size.q, size.dtype);
  task.k = AddressOf(size.k, size.dtype);
  task.v = AddressOf(size.v, size.dtype);
  task.q_stride = size.q.pitch != 0 ? size.q.pitch : size.heads * size.head_dim;
  task.k_stride = size.k.pitch != 0 ? size.k.pitch : size.kv_heads * size.head_dim;
  task.v_stride = size.v.pitch != 0 ? size.v.pitch : size.kv_heads * size.value_dim;
  task.out_stride = size.heads * size.value_dim;
  task.bf16 = size.dtype == DType::kBF16;
  task.scale = size.scale;
  task.causal = size.causal;
  task.window = size.window;
  if (size.key_mask) task.key_mask = &kMask;
  if (size.bias) task.bias = &kBias;
  return task;
}

bool IsEmpty(const AttentionSize& size) {
  return size.batch * size.queries * size.heads * size.value_dim * size.keys == 0;
}

}  // namespace

ScratchBlocks CudaOpScratch::Attention(const AttentionSize& size) const {
  if (IsEmpty(size) || !context_->MakeCurrent().ok()) return 0;
  const AttentionTask task = TaskFor(size);
  if (CudnnAttention::Takes(task)) return cudnn_attention_->most_workspace_bytes();
  return ProductAttentionScratch(*context_, *batched_products_, task).value_or(ScratchBlocks());
}

FirstUse CudaOpScratch::FirstUseOf(const AttentionSize& size) const {
  if (IsEmpty(size)) return {};
  const AttentionTask task = TaskFor(size);
  if (!CudnnAttention::Takes(task) || cudnn_attention_->HasPlanFor(task)) return {};
  FirstUse first_use;
  first_use.key = absl::HashOf(CudnnAttention::KeyOf(task));
  first_use.preparation.attentions = 1;
  return first_use;
}

void CudaDevice::PrepareAhead(absl::Span<const AttentionSize> sizes) {
  std::vector<AttentionTask> tasks;
  for (const AttentionSize& size : sizes) {
    const AttentionTask task = TaskFor(size);
    if (!IsEmpty(size) && CudnnAttention::Takes(task)) tasks.push_back(task);
  }
  cudnn_attention_->MakeAhead(tasks);
}

absl::Status CudaDevice::HeadGate(Tensor* x, const Columns& logits) {
  LTX_RETURN_IF_ERROR(CheckHeadGate(*x, logits));
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  HeadGateTask task;
  task.x = x->raw();
  task.logits = DataOf(logits);
  task.y = x->raw();
  task.rows = x->shape().num_rows();
  task.heads = logits.width;
  task.head_width = x->dim(2) / logits.width;
  task.x_stride = x->dim(2);
  task.y_stride = x->dim(2);
  task.logit_stride = logits.pitch();
  task.bf16 = x->dtype() == DType::kBF16;
  LTX_RETURN_IF_CUDA_ERROR(LaunchHeadGate(task, context_->stream()));
  return absl::OkStatus();
}

absl::Status CudaDevice::NormRopeInPlace(absl::Span<const NormRopePart> parts) {
  for (const NormRopePart& part : parts) {
    LTX_RETURN_IF_ERROR(CheckNormRope("NormRopeInPlace", part.x, part.options));
  }
  LTX_RETURN_IF_ERROR(context_->MakeCurrent());
  std::vector<NormRopeTask> tasks;
  for (const NormRopePart& part : parts) tasks.push_back(TaskFor(part.x, part.x, part.options));
  if (tasks.size() == 2) {
    LTX_RETURN_IF_CUDA_ERROR(LaunchNormRopePair(tasks[0], tasks[1], context_->stream()));
    return absl::OkStatus();
  }
  for (const NormRopeTask& task : tasks) {
    LTX_RETURN_IF_CUDA_ERROR(LaunchNormRope(task, context_->stream()));
  }
  return absl::OkStatus();
}

}  // namespace ltx::cuda
