#include "kernels/cpu/onednn.h"

#include <omp.h>

#include <new>
#include <unordered_map>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using FormatTag = dnnl::memory::format_tag;

/// Compiled products kept: a full model has some dozens of weight shapes, each met with a handful
/// of row counts per request. One holds a few tens of KiB of code.
constexpr size_t kCompiledProducts = 512;

dnnl::memory::data_type TypeOf(DType dtype) {
  return dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Runs `body`, which may throw as oneDNN's C++ interface does.
template <typename Body>
absl::Status Catching(absl::string_view what, const Body& body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    const std::string text = absl::StrCat("oneDNN: ", what, ": ", error.what());
    if (error.status == dnnl_out_of_memory) return absl::ResourceExhaustedError(text);
    if (error.status == dnnl_unimplemented) return absl::UnimplementedError(text);
    return absl::InternalError(text);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("oneDNN: ", what, ": out of memory"));
  }
}

/// Sets the OpenMP team size of the calling thread while it lives: oneDNN reads it both when a
/// primitive is made and when it runs, and the two must agree.
class ScopedTeamSize {
 public:
  explicit ScopedTeamSize(int threads) : previous_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ScopedTeamSize() { omp_set_num_threads(previous_); }
  ScopedTeamSize(const ScopedTeamSize&) = delete;
  ScopedTeamSize& operator=(const ScopedTeamSize&) = delete;

 private:
  const int previous_;
};

dnnl::matmul::primitive_desc Describe(const dnnl::engine& engine, const ProductShape& shape,
                                      const Desc& layout) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // Against the environment variable that permits products of reduced precision.
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  const Desc source(Dims{shape.rows, shape.in}, TypeOf(shape.dtype), FormatTag::ab);
  const Desc result(Dims{shape.rows, shape.out}, TypeOf(shape.result_dtype), FormatTag::ab);
  if (!shape.has_bias) return {dnnl::matmul::desc(source, layout, result), attributes, engine};
  const Desc bias(Dims{1, shape.out}, dnnl::memory::data_type::f32, FormatTag::ab);
  return {dnnl::matmul::desc(source, layout, bias, result), attributes, engine};
}

}  // namespace

CpuDevice::OneDnn::OneDnn(int threads)
    : threads_(threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
  // The enumerators are bit sets that grow with the instruction set.
  native_bf16_ = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
  // The library's process-wide cache would hold a second reference to what index_ bounds.
  dnnl::set_primitive_cache_capacity(0);
}

absl::StatusOr<std::unique_ptr<CpuDevice::OneDnn>> CpuDevice::OneDnn::Create(int threads) {
  std::unique_ptr<OneDnn> onednn;
  LTX_RETURN_IF_ERROR(Catching("start", [&] { onednn = absl::WrapUnique(new OneDnn(threads)); }));
  return onednn;
}

absl::StatusOr<Desc> CpuDevice::OneDnn::WeightLayout(int64_t in, int64_t out, DType dtype,
                                                     bool has_bias) {
  const ScopedTeamSize team(threads_);
  ProductShape shape;
  // Any number of rows gives the same answer.
  shape.rows = 256;
  shape.in = in;
  shape.out = out;
  shape.dtype = dtype;
  shape.result_dtype = dtype;
  shape.has_bias = has_bias;
  Desc layout;
  LTX_RETURN_IF_ERROR(Catching("layout of a weight", [&] {
    const Desc any(Dims{in, out}, TypeOf(dtype), FormatTag::any);
    layout = Describe(engine_, shape, any).weights_desc();
  }));
  return layout;
}

absl::StatusOr<CompiledPacking> CpuDevice::OneDnn::Packing(int64_t in, int64_t out, DType dtype,
                                                           const Desc& layout) {
  const ScopedTeamSize team(threads_);
  CompiledPacking packing;
  LTX_RETURN_IF_ERROR(Catching("packing of a weight", [&] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    packing.row_major = Desc(Dims{in, out}, TypeOf(dtype), FormatTag::ba);
    packing.packed = layout;
    const dnnl::reorder::primitive_desc description(engine_, packing.row_major, engine_, layout,
                                                    attributes);
    packing.scratch = description.scratchpad_desc();
    packing.primitive = dnnl::reorder(description);
  }));
  return packing;
}

absl::Status CpuDevice::OneDnn::PackWeight(const CompiledPacking& packing, const void* weight,
                                           void* packed, void* scratch) {
  const ScopedTeamSize team(threads_);
  return Catching("packing of a weight", [&] {
    std::unordered_map<int, dnnl::memory> arguments;
    arguments.emplace(DNNL_ARG_FROM,
                      dnnl::memory(packing.row_major, engine_, const_cast<void*>(weight)));
    arguments.emplace(DNNL_ARG_TO, dnnl::memory(packing.packed, engine_, packed));
    arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(packing.scratch, engine_, scratch));
    packing.primitive.execute(stream_, arguments);
    stream_.wait();
  });
}

absl::StatusOr<std::shared_ptr<const CompiledProduct>> CpuDevice::OneDnn::Product(
    const ProductShape& shape, const Desc& layout) {
  const Key key(shape.rows, shape.in, shape.out, shape.dtype, shape.result_dtype, shape.has_bias);
  if (const auto found = index_.find(key); found != index_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->second;
  }
  const ScopedTeamSize team(threads_);
  auto product = std::make_shared<CompiledProduct>();
  LTX_RETURN_IF_ERROR(Catching("compilation of a product", [&] {
    const dnnl::matmul::primitive_desc description = Describe(engine_, shape, layout);
    product->source = description.src_desc();
    product->weight = description.weights_desc();
    product->bias = description.bias_desc();
    product->result = description.dst_desc();
    product->scratch = description.scratchpad_desc();
    product->primitive = dnnl::matmul(description);
  }));
  if (recent_.size() >= kCompiledProducts) {
    index_.erase(recent_.back().first);
    recent_.pop_back();
  }
  recent_.emplace_front(key, product);
  index_[key] = recent_.begin();
  return product;
}

absl::Status CpuDevice::OneDnn::Run(const CompiledProduct& product, const void* source,
                                    const void* weight, const void* bias, void* result,
                                    void* scratch) {
  const ScopedTeamSize team(threads_);
  return Catching("product", [&] {
    const auto wrap = [this](const Desc& desc, const void* data) {
      return dnnl::memory(desc, engine_, const_cast<void*>(data));
    };
    std::unordered_map<int, dnnl::memory> arguments;
    arguments.emplace(DNNL_ARG_SRC, wrap(product.source, source));
    arguments.emplace(DNNL_ARG_WEIGHTS, wrap(product.weight, weight));
    if (!product.bias.is_zero()) arguments.emplace(DNNL_ARG_BIAS, wrap(product.bias, bias));
    arguments.emplace(DNNL_ARG_DST, wrap(product.result, result));
    arguments.emplace(DNNL_ARG_SCRATCHPAD, wrap(product.scratch, scratch));
    product.primitive.execute(stream_, arguments);
    stream_.wait();
  });
}

}  // namespace ltx::cpu
