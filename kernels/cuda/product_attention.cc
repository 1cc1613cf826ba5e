#include "kernels/cuda/product_attention.h"

#include <algorithm>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/softmax_kernels.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// Bytes of scores and weights held at once: the scores of 1,024 queries and keys in 16 heads.
constexpr int64_t kMostScoreBytes = int64_t{96} << 20;

/// Heads that one launch computes together, and their queries.
struct Blocking {
  int64_t heads;  // per launch
  int64_t queries;
  int64_t pitch;  // of a row of scores
  int64_t score_bytes;
  int64_t weight_bytes;  // 0: the weights overwrite the scores
};

Blocking ChooseBlocking(const AttentionTask& task) {
  Blocking blocking{};
  // Rows of whole 16-byte packs keep the fast products applicable.
  blocking.pitch = (task.keys + 7) / 8 * 8;
  const int64_t row_bytes = blocking.pitch * (task.bf16 ? 6 : 4);
  // Heads with keys of their own lie a constant distance apart; those of a group share keys.
  blocking.heads = task.heads == task.kv_heads ? task.heads : task.heads / task.kv_heads;
  blocking.queries = task.queries;
  while (blocking.heads * blocking.queries * row_bytes > kMostScoreBytes) {
    if (blocking.queries > 256 || blocking.heads == 1) {
      if (blocking.queries == 1) break;
      blocking.queries = (blocking.queries + 1) / 2;
    } else {
      blocking.heads = (blocking.heads + 1) / 2;
    }
  }
  const int64_t elements = blocking.heads * blocking.queries * blocking.pitch;
  blocking.score_bytes = elements * static_cast<int64_t>(sizeof(float));
  blocking.weight_bytes = task.bf16 ? elements * 2 : 0;
  return blocking;
}

const uint8_t* At(const void* data, int64_t elements, int64_t element) {
  return static_cast<const uint8_t*>(data) + elements * element;
}

/// Where the values of a batch row are read.
struct Values {
  const void* data;
  int64_t stride;
};

/// Queries [first, first + count) of heads [head, head + heads), all of one kind of sharing.
struct Block {
  int64_t batch;
  int64_t head;
  int64_t heads;
  int64_t first;
  int64_t count;
};

/// scores = scale q k^T.
BatchedProduct ScoreProduct(const AttentionTask& task, const Blocking& blocking, const Block& block,
                            float* scores) {
  const int64_t element = task.bf16 ? 2 : 4;
  const int64_t group = task.heads / task.kv_heads;
  const int64_t query_row = block.batch * task.queries + block.first;
  BatchedProduct product;
  product.a = At(task.q, query_row * task.q_stride + block.head * task.width, element);
  product.b = At(task.k, block.batch * task.keys * task.k_stride + block.head / group * task.width,
                 element);
  product.c = scores;
  product.rows = block.count;
  product.columns = task.keys;
  product.depth = task.width;
  product.batch = block.heads;
  product.a_pitch = task.q_stride;
  product.b_pitch = task.k_stride;
  product.c_pitch = blocking.pitch;
  product.a_step = task.width;
  product.b_step = group == 1 ? task.width : 0;
  product.c_step = block.count * blocking.pitch;
  product.transposed_b = true;
  product.bf16 = task.bf16;
  product.factor = task.scale;
  return product;
}

/// out = weights v.
BatchedProduct SumProduct(const AttentionTask& task, const Blocking& blocking, const Block& block,
                          const Values& values, const void* weights) {
  const int64_t element = task.bf16 ? 2 : 4;
  const int64_t group = task.heads / task.kv_heads;
  const int64_t query_row = block.batch * task.queries + block.first;
  BatchedProduct product;
  product.a = weights;
  product.b = At(values.data, block.head / group * task.value_width, element);
  product.c = static_cast<uint8_t*>(task.out) +
              (query_row * task.out_stride + block.head * task.value_width) * element;
  product.rows = block.count;
  product.columns = task.value_width;
  product.depth = task.keys;
  product.batch = block.heads;
  product.a_pitch = blocking.pitch;
  product.b_pitch = values.stride;
  product.c_pitch = task.out_stride;
  product.a_step = block.count * blocking.pitch;
  product.b_step = group == 1 ? task.value_width : 0;
  product.c_step = task.value_width;
  product.bf16 = task.bf16;
  product.f32_result = !task.bf16;
  return product;
}

absl::Status RunBlock(CudaContext& context, BatchedProducts& products, const AttentionTask& task,
                      const Blocking& blocking, const Block& block, const Values& values,
                      float* scores, void* weights) {
  LTX_RETURN_IF_ERROR(products.Run(context, ScoreProduct(task, blocking, block, scores)));
  SoftmaxTask softmax;
  softmax.scores = scores;
  softmax.weights = weights;
  softmax.heads = block.heads;
  softmax.queries = block.count;
  softmax.keys = task.keys;
  softmax.pitch = blocking.pitch;
  softmax.bf16 = task.bf16;
  softmax.first_query = block.first;
  softmax.causal = task.causal;
  softmax.window = task.window;
  if (task.key_mask != nullptr) softmax.key_mask = task.key_mask + block.batch * task.keys;
  if (task.bias != nullptr) {
    softmax.bias =
        task.bias + block.batch * task.bias_batch_stride + block.first * task.bias_query_stride;
    softmax.bias_query_stride = task.bias_query_stride;
  }
  LTX_RETURN_IF_CUDA_ERROR(LaunchSoftmax(softmax, context.stream()));

  return products.Run(context, SumProduct(task, blocking, block, values, weights));
}

/// Bytes of a copy of the values of a batch row, for where a mask hides some.
int64_t MaskedBytes(const AttentionTask& task) {
  if (task.key_mask == nullptr) return 0;
  return task.keys * task.kv_heads * task.value_width * (task.bf16 ? 2 : 4);
}

}  // namespace

absl::Status RunProductAttention(CudaContext& context, BatchedProducts& products,
                                 const AttentionTask& task) {
  const Blocking blocking = ChooseBlocking(task);
  const int64_t element = task.bf16 ? 2 : 4;
  LTX_ASSIGN_OR_RETURN(const Tensor scores, context.Workspace(blocking.score_bytes));
  Tensor weights = scores;
  if (blocking.weight_bytes > 0) {
    LTX_ASSIGN_OR_RETURN(weights, context.Workspace(blocking.weight_bytes));
  }
  const int64_t value_row = task.kv_heads * task.value_width;
  Tensor masked;
  if (task.key_mask != nullptr) {
    LTX_ASSIGN_OR_RETURN(masked, context.Workspace(MaskedBytes(task)));
  }
  // Blocks of heads stay within what shares or owns its keys alike.
  const int64_t group = task.heads / task.kv_heads;
  const int64_t span = group == 1 ? task.heads : group;
  for (int64_t batch = 0; batch < task.batch; ++batch) {
    Values values = {At(task.v, batch * task.keys * task.v_stride, element), task.v_stride};
    if (task.key_mask != nullptr) {
      MaskRowsTask mask;
      mask.x = values.data;
      mask.out = masked.raw();
      mask.mask = task.key_mask + batch * task.keys;
      mask.rows = task.keys;
      mask.width = value_row;
      mask.stride = task.v_stride;
      mask.bf16 = task.bf16;
      LTX_RETURN_IF_CUDA_ERROR(LaunchMaskRows(mask, context.stream()));
      values = {masked.raw(), value_row};
    }
    for (int64_t begin = 0; begin < task.heads; begin += span) {
      for (int64_t head = begin; head < begin + span; head += blocking.heads) {
        const int64_t heads = std::min(blocking.heads, begin + span - head);
        for (int64_t first = 0; first < task.queries; first += blocking.queries) {
          const int64_t count = std::min(blocking.queries, task.queries - first);
          LTX_RETURN_IF_ERROR(RunBlock(context, products, task, blocking,
                                       {batch, head, heads, first, count}, values,
                                       scores.data<float>(), weights.raw()));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ScratchBlocks> ProductAttentionScratch(CudaContext& context,
                                                      BatchedProducts& products,
                                                      const AttentionTask& task) {
  const Blocking blocking = ChooseBlocking(task);
  const Block block = {0, 0, blocking.heads, 0, std::min(blocking.queries, task.queries)};
  Values values = {task.v, task.v_stride};
  // A copy of the values begins where a tensor does.
  if (task.key_mask != nullptr) values = {nullptr, task.kv_heads * task.value_width};
  LTX_ASSIGN_OR_RETURN(
      const int64_t score,
      products.WorkspaceBytes(context, ScoreProduct(task, blocking, block, nullptr)));
  LTX_ASSIGN_OR_RETURN(
      const int64_t sum,
      products.WorkspaceBytes(context, SumProduct(task, blocking, block, values, nullptr)));
  return ScratchBlocks(
      {blocking.score_bytes, blocking.weight_bytes, MaskedBytes(task), std::max(score, sum)});
}

}  // namespace ltx::cuda
