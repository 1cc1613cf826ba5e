#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fast_math.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/op_scratch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector.h"
#include "kernels/operand_check.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// A weight in oneDNN's preferred layout, and the bias in f32.
class PackedLinear final : public PreparedWeight {
 public:
  /// What callers hand in and get out.
  DType dtype = DType::kF32;
  /// What the product is computed in: dtype, or f32 where the processor has no bf16 product.
  DType compute_dtype = DType::kF32;
  dnnl::memory::desc layout;
  Tensor weight;
  Tensor bias;
};

void Widen(int threads, const BFloat16* from, int64_t count, float* to) {
  ParallelFor(threads, count, kCheapGrain, [&](int64_t begin, int64_t end) {
    ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
      lanes.Store(to + begin + i, lanes.Load(from + begin + i));
    });
  });
}

/// to[i] = activation(from[i]), rounded to T; `from` may be `to`.
template <typename T>
void ActivateInto(int threads, Activation activation, const float* from, int64_t count, T* to) {
  ParallelFor(threads, count, kCostlyGrain, [&](int64_t begin, int64_t end) {
    DispatchActivation(activation, [&](auto function) {
      ForEachGroup(end - begin, [&](int64_t i, auto lanes) {
        lanes.Store(to + begin + i, function(lanes.Load(from + begin + i)));
      });
    });
  });
}

/// Every row of y [rows, out] becomes activation(bias), or activation(0).
template <typename T>
void FillRows(int threads, Activation activation, const float* bias, int64_t rows, int64_t out,
              T* y) {
  for (int64_t column = 0; column < out; ++column) {
    const float value = bias == nullptr ? 0.0f : bias[column];
    ActivateInto(1, activation, &value, 1, y + column);
  }
  ParallelFor(threads, rows, RowGrain(kCheapGrain, out), [&](int64_t begin, int64_t end) {
    for (int64_t row = std::max<int64_t>(begin, 1); row < end; ++row) {
      std::memcpy(y + row * out, y, static_cast<size_t>(out) * sizeof(T));
    }
  });
}

/// Rows of a product whose operands need scratch in f32 are done in groups of at most this many
/// bytes of scratch: enough rows for a full-speed product, little against the activations.
constexpr int64_t kScratchBytes = int64_t{8} << 20;

/// How the operands of a product pass through f32, and by how many rows at a time.
struct Widening {
  bool source = false;
  bool result = false;
  int64_t group = 0;

  int64_t row_bytes(int64_t in, int64_t out) const {
    return ((source ? in : 0) + (result ? out : 0)) * SizeOf(DType::kF32);
  }
};

Widening WideningOf(const LinearSize& size, bool widen_source) {
  Widening widening;
  widening.source = widen_source;
  // An activation sees the sum before it is rounded, so a bf16 product goes through f32 then.
  widening.result =
      size.dtype == DType::kBF16 && (widen_source || size.activation != Activation::kNone);
  const int64_t row_bytes = widening.row_bytes(size.in, size.out);
  widening.group = row_bytes == 0
                       ? size.rows
                       : std::min(size.rows, std::max<int64_t>(64, kScratchBytes / row_bytes));
  return widening;
}

}  // namespace

ScratchBlocks CpuOpScratch::Linear(const LinearSize& size) const {
  const Widening widening = WideningOf(size, size.dtype == DType::kBF16 && !native_bf16_);
  return widening.group * widening.row_bytes(size.in, size.out);
}

absl::StatusOr<LinearWeight> CpuDevice::PrepareLinear(const Tensor& weight, const Tensor& bias,
                                                      MemoryOwner owner) {
  LTX_RETURN_IF_ERROR(CheckLinearWeight(weight, bias));
  const int64_t out = weight.dim(0);
  const int64_t in = weight.dim(1);
  auto packed = std::make_shared<PackedLinear>();
  packed->dtype = weight.dtype();
  packed->compute_dtype = onednn_->native_bf16() ? weight.dtype() : DType::kF32;
  if (bias.defined() && out > 0) {
    LTX_ASSIGN_OR_RETURN(packed->bias, Allocate({out}, DType::kF32, owner));
    if (bias.dtype() == DType::kF32) {
      std::memcpy(packed->bias.raw(), bias.raw(), static_cast<size_t>(bias.num_bytes()));
    } else {
      Widen(1, bias.data<BFloat16>(), out, packed->bias.data<float>());
    }
  }
  if (out > 0 && in > 0) {
    LTX_ASSIGN_OR_RETURN(packed->layout, onednn_->WeightLayout(in, out, packed->compute_dtype,
                                                               packed->bias.defined()));
    const auto packed_bytes = static_cast<int64_t>(packed->layout.get_size());
    LTX_ASSIGN_OR_RETURN(packed->weight, Allocate({packed_bytes}, DType::kU8, owner));
    Tensor widened;
    const void* source = weight.raw();
    if (packed->compute_dtype != packed->dtype) {
      LTX_ASSIGN_OR_RETURN(widened, Workspace(weight.num_elements() * SizeOf(DType::kF32)));
      Widen(threads_, weight.data<BFloat16>(), weight.num_elements(), widened.data<float>());
      source = widened.raw();
    }
    LTX_ASSIGN_OR_RETURN(const CompiledPacking packing,
                         onednn_->Packing(in, out, packed->compute_dtype, packed->layout));
    LTX_ASSIGN_OR_RETURN(const Tensor scratch, Workspace(packing.scratch_bytes()));
    LTX_RETURN_IF_ERROR(onednn_->PackWeight(packing, source, packed->weight.raw(), scratch.raw()));
  }
  LinearWeight result;
  result.prepared = std::move(packed);
  result.in_features = in;
  result.out_features = out;
  return result;
}

absl::StatusOr<Tensor> CpuDevice::Linear(const Tensor& x, const LinearWeight& weight,
                                         const LinearOptions& options) {
  LTX_RETURN_IF_ERROR(CheckFloat("Linear", x, 1));
  if (!weight.defined()) return OperandError("Linear", "needs a prepared weight", {&x});
  const auto& packed = static_cast<const PackedLinear&>(*weight.prepared);
  LTX_RETURN_IF_ERROR(CheckLinearInput(x, weight, packed.dtype));
  const int64_t in = weight.in_features;
  const int64_t out = weight.out_features;
  Shape shape = x.shape();
  shape.set_dim(-1, out);
  LTX_ASSIGN_OR_RETURN(Tensor y, Allocate(shape, x.dtype(), MemoryOwner::kActivations));
  const int64_t rows = x.shape().num_rows();
  if (rows == 0 || out == 0) return y;
  if (in == 0) {
    const float* bias = packed.bias.defined() ? packed.bias.data<float>() : nullptr;
    DispatchFloat(y.dtype(), [&](auto element) {
      FillRows(threads_, options.activation, bias, rows, out, y.data<decltype(element)>());
    });
    return y;
  }

  LinearSize size;
  size.rows = rows;
  size.in = in;
  size.out = out;
  size.dtype = y.dtype();
  size.activation = options.activation;
  const Widening widening = WideningOf(size, packed.compute_dtype != packed.dtype);
  const bool widen = widening.source;
  const bool through_f32 = widening.result;
  const int64_t group = widening.group;
  Tensor source_f32;
  Tensor product_f32;
  if (widen) {
    LTX_ASSIGN_OR_RETURN(source_f32, Allocate({group, in}, DType::kF32, MemoryOwner::kWorkspace));
  }
  if (through_f32) {
    LTX_ASSIGN_OR_RETURN(product_f32, Allocate({group, out}, DType::kF32, MemoryOwner::kWorkspace));
  }

  ProductShape product_shape;
  product_shape.in = in;
  product_shape.out = out;
  product_shape.dtype = packed.compute_dtype;
  product_shape.result_dtype = through_f32 ? DType::kF32 : y.dtype();
  product_shape.has_bias = packed.bias.defined();
  for (int64_t begin = 0; begin < rows; begin += group) {
    const int64_t count = std::min(group, rows - begin);
    product_shape.rows = count;
    LTX_ASSIGN_OR_RETURN(const auto product, onednn_->Product(product_shape, packed.layout));
    LTX_ASSIGN_OR_RETURN(const Tensor scratch, Workspace(product->scratch_bytes()));
    const void* source = static_cast<const char*>(x.raw()) + begin * in * SizeOf(x.dtype());
    void* target = static_cast<char*>(y.raw()) + begin * out * SizeOf(y.dtype());
    if (widen) {
      Widen(threads_, static_cast<const BFloat16*>(source), count * in, source_f32.data<float>());
      source = source_f32.raw();
    }
    void* sums = through_f32 ? product_f32.raw() : target;
    LTX_RETURN_IF_ERROR(onednn_->Run(*product, source, packed.weight.raw(), packed.bias.raw(), sums,
                                     scratch.raw()));
    if (through_f32) {
      ActivateInto(threads_, options.activation, product_f32.data<float>(), count * out,
                   static_cast<BFloat16*>(target));
    } else if (options.activation != Activation::kNone) {
      ActivateInto(threads_, options.activation, static_cast<float*>(target), count * out,
                   static_cast<float*>(target));
    }
  }
  return y;
}

}  // namespace ltx::cpu
