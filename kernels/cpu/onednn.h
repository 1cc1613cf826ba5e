#ifndef LTX_KERNELS_CPU_ONEDNN_H_
#define LTX_KERNELS_CPU_ONEDNN_H_

#include <cstdint>
#include <list>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cpu/cpu_device.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace ltx::cpu {

/// y [rows, out] = x [rows, in] W^T + bias. Operands in `dtype`, sums and bias in f32, the result
/// rounded to `result_dtype`.
struct ProductShape {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  DType dtype = DType::kF32;
  DType result_dtype = DType::kF32;
  bool has_bias = false;
};

/// What oneDNN compiles for one ProductShape.
struct CompiledProduct {
  dnnl::memory::desc source;
  dnnl::memory::desc weight;
  dnnl::memory::desc bias;
  dnnl::memory::desc result;
  dnnl::memory::desc scratch;
  dnnl::primitive primitive;
  int64_t scratch_bytes() const { return static_cast<int64_t>(scratch.get_size()); }
};

/// What oneDNN compiles for the repacking of one weight.
struct CompiledPacking {
  dnnl::memory::desc row_major;
  dnnl::memory::desc packed;
  dnnl::memory::desc scratch;
  dnnl::primitive primitive;
  int64_t scratch_bytes() const { return static_cast<int64_t>(scratch.get_size()); }
};

/// oneDNN as the CPU device uses it: matrix products. Its exceptions end here, as a status that is
/// RESOURCE_EXHAUSTED if it ran out of memory. Scratch comes from the caller, so that the ledger
/// knows of it (the library's own AVX2 product, which packs into a few MiB of its own, is the
/// exception). Operands are never reduced in precision.
struct CpuDevice::OneDnn {
 public:
  /// `threads` is the size of the OpenMP team of every product.
  static absl::StatusOr<std::unique_ptr<OneDnn>> Create(int threads);

  /// Whether this processor multiplies bf16 natively.
  bool native_bf16() const { return native_bf16_; }

  /// The layout in which products want a weight [out, in]. It does not depend on their rows.
  absl::StatusOr<dnnl::memory::desc> WeightLayout(int64_t in, int64_t out, DType dtype,
                                                  bool has_bias);
  /// What brings a row-major weight [out, in] into `layout`.
  absl::StatusOr<CompiledPacking> Packing(int64_t in, int64_t out, DType dtype,
                                          const dnnl::memory::desc& layout);
  absl::Status PackWeight(const CompiledPacking& packing, const void* weight, void* packed,
                          void* scratch);

  /// The product of this shape with a weight in `layout`, compiled at first use (some 0.2 ms) and
  /// kept in a bounded map.
  absl::StatusOr<std::shared_ptr<const CompiledProduct>> Product(const ProductShape& shape,
                                                                 const dnnl::memory::desc& layout);
  /// `bias` is read only if the shape has one.
  absl::Status Run(const CompiledProduct& product, const void* source, const void* weight,
                   const void* bias, void* result, void* scratch);

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, DType, DType, bool>;
  using Entry = std::pair<Key, std::shared_ptr<const CompiledProduct>>;

  explicit OneDnn(int threads);

  const int threads_;
  bool native_bf16_ = false;
  dnnl::engine engine_;
  dnnl::stream stream_;
  /// Most recently used first.
  std::list<Entry> recent_;
  absl::flat_hash_map<Key, std::list<Entry>::iterator> index_;
};

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_ONEDNN_H_
