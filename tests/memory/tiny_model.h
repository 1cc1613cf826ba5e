#ifndef LTX_TESTS_MEMORY_TINY_MODEL_H_
#define LTX_TESTS_MEMORY_TINY_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/model.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/memory/counting_memory.h"

namespace ltx::testing {

/// ltx-tiny, or a set like it, on a CPU device whose memory is counted.
class TinyModel {
 public:
  /// Finished clip on the host, for comparisons of bytes.
  struct Clip {
    std::vector<uint8_t> frames;
    std::vector<float> waveform;
    friend bool operator==(const Clip& a, const Clip& b) {
      return a.frames == b.frames && a.waveform == b.waveform;
    }
  };

  explicit TinyModel(const std::string& folder = "models/ltx-tiny");

  CountingMemory& memory() { return memory_; }
  cpu::CpuDevice& device() { return *device_; }
  const pipeline::Model& model() { return *model_; }
  const checkpoint::ModelSet& files() const { return files_; }
  int64_t live_bytes() const { return memory_.Read().total.live_bytes; }

  /// Reads the model again from the opened files; the model that was there goes away first.
  absl::Status Load(DType compute_dtype = DType::kF32, int64_t fused_cache_bytes = 0);
  void Unload() { model_.reset(); }

  /// As small as the model and the recipe allow.
  pipeline::GenerationRequest Request(pipeline::Recipe recipe) const;
  /// A whole run; the job and its device memory are gone on return.
  absl::StatusOr<Clip> Run(const pipeline::GenerationRequest& request);

 private:
  /// Outlives every tensor.
  CountingMemory memory_;
  checkpoint::ModelSet files_;
  std::unique_ptr<cpu::CpuDevice> device_;
  std::unique_ptr<pipeline::Model> model_;
};

}  // namespace ltx::testing

#endif  // LTX_TESTS_MEMORY_TINY_MODEL_H_
