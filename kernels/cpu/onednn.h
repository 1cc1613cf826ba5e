#ifndef LTX_KERNELS_CPU_ONEDNN_H_
#define LTX_KERNELS_CPU_ONEDNN_H_

#include <omp.h>

#include <cstdint>
#include <list>
#include <memory>
#include <new>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/cpu_device.h"
#include "oneapi/dnnl/dnnl.hpp"

/// The border to oneDNN, for the files of the CPU device alone: exceptions end here.

namespace ltx::cpu {

/// Runs `body`, which may throw as oneDNN's C++ interface does, and turns what it throws into a
/// status that names `what`.
template <typename Body>
absl::Status CatchDnnl(absl::string_view what, const Body& body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    const std::string text = absl::StrCat("oneDNN, ", what, ": ", error.what());
    if (error.status == dnnl_out_of_memory) return absl::ResourceExhaustedError(text);
    if (error.status == dnnl_unimplemented) return absl::UnimplementedError(text);
    return absl::InternalError(text);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("oneDNN, ", what, ": out of memory"));
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

/// A compiled primitive and the scratch it asks for.
struct CompiledPrimitive {
  dnnl::primitive primitive;
  int64_t scratch_bytes = 0;
};

struct CpuDevice::OneDnn {
  using Key = std::vector<int64_t>;

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  /// oneDNN multiplies bf16 natively on this processor; else operands are widened to f32.
  bool native_bf16 = false;

  /// Most recently used first. A primitive holds some ten KiB of code; a full model has a few
  /// hundred shapes, and lengths change from request to request.
  static constexpr size_t kCapacity = 512;
  std::list<std::pair<Key, std::shared_ptr<const CompiledPrimitive>>> recent;
  absl::flat_hash_map<Key, decltype(recent)::iterator> index;

  std::shared_ptr<const CompiledPrimitive> Find(const Key& key) {
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    recent.splice(recent.begin(), recent, found->second);
    return found->second->second;
  }

  void Insert(const Key& key, std::shared_ptr<const CompiledPrimitive> primitive) {
    if (recent.size() >= kCapacity) {
      index.erase(recent.back().first);
      recent.pop_back();
    }
    recent.emplace_front(key, std::move(primitive));
    index[key] = recent.begin();
  }
};

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_ONEDNN_H_
