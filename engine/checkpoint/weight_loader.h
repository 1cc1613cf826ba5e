#ifndef LTX_ENGINE_CHECKPOINT_WEIGHT_LOADER_H_
#define LTX_ENGINE_CHECKPOINT_WEIGHT_LOADER_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/checkpoint/linear_pool.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_patch.h"
#include "engine/checkpoint/weight_set.h"
#include "kernels/device.h"

namespace ltx::checkpoint {

/// Brings weights onto a device in the compute dtype, checks every shape, and remembers what was
/// asked for so that CheckAllConsumed() can name tensors that nothing uses. Copies (and Sub()
/// loaders) share that memory. How a weight is stored (plain, scaled FP8, NVFP4, ...) is resolved
/// here and invisible to model code; stored forms that are not implemented are refused by name with
/// UNIMPLEMENTED.
///
/// Tensors may still be on their way to the device when they are handed out: operations on them
/// wait, and CheckAllConsumed() or FinishUploads() ends a load.
///
/// Errors: NOT_FOUND for a missing tensor, INVALID_ARGUMENT for a wrong shape or dtype; both name
/// file and tensor. DATA_LOSS for a file that cannot be read any more.
class WeightLoader {
 public:
  /// `weights` must outlive the loader. `compute` is kF32 or kBF16.
  WeightLoader(Device* device, const WeightSet* weights, DType compute, MemoryOwner owner);

  /// A loader of the same tensors whose linear weights `patch` changes; null: none. It must outlive
  /// the loader, and CheckAllConsumed() holds the patch to having changed all it names.
  WeightLoader WithPatch(const WeightPatch* patch) const;

  /// A loader that takes linears which `pool` has and no patch changes from there, and without a
  /// patch puts there what it loads. `pool` must outlive the loader and belong to this device,
  /// these weights and this dtype; null: none.
  WeightLoader WithPool(LinearPool* pool) const;

  /// A loader for names below `prefix` (give the final dot: "transformer_blocks.0.").
  WeightLoader Sub(absl::string_view prefix) const;

  Device& device() const { return *device_; }
  DType compute_dtype() const { return compute_; }
  MemoryOwner owner() const { return owner_; }

  bool Has(absl::string_view name) const;
  /// The stored shape, or nullptr: for sizes that only the file knows. Does not consume.
  const Shape* ShapeOf(absl::string_view name) const;

  /// The tensor in the compute dtype.
  absl::StatusOr<Tensor> Get(absl::string_view name, const Shape& shape);
  /// Tensors of one shape as one: [names, shape...].
  absl::StatusOr<Tensor> GetStacked(absl::Span<const std::string> names, const Shape& shape);
  /// The tensor widened to f32 whatever the compute dtype (vocoder, statistics, scalars).
  absl::StatusOr<Tensor> GetF32(absl::string_view name, const Shape& shape);
  /// The elements on the host, as float.
  absl::StatusOr<std::vector<float>> GetHost(absl::string_view name, const Shape& shape);

  /// `module`.weight [out, in] and, if `bias`, `module`.bias [out].
  absl::StatusOr<LinearWeight> Linear(absl::string_view module, int64_t in, int64_t out,
                                      bool bias = true);
  /// Several linears of one input as a single one: their outputs side by side, in order.
  struct LinearPart {
    std::string module;
    int64_t out = 0;
  };
  absl::StatusOr<LinearWeight> FusedLinear(absl::Span<const LinearPart> parts, int64_t in,
                                           bool bias = true);
  /// `module`.weight [out, in, kernel...] and, if `bias`, `module`.bias [out].
  absl::StatusOr<ConvWeight> Conv(absl::string_view module, int64_t in, int64_t out,
                                  const Shape& kernel, bool bias = true);
  /// `module`.weight [in, out, kernel] of a transposed 1-D convolution and `module`.bias [out].
  absl::StatusOr<ConvWeight> ConvTranspose1d(absl::string_view module, int64_t in, int64_t out,
                                             int64_t kernel, bool bias = true);

  /// Marks names below this loader's prefix as known and not needed: an exact name, or a prefix
  /// ending in "*".
  void Ignore(absl::string_view pattern);
  /// INVALID_ARGUMENT listing the tensors (below this loader's prefix) that were neither asked for
  /// nor ignored; INTERNAL for one that the patch names and nothing loaded as a linear weight. Else
  /// FinishUploads(). The last step of a load.
  absl::Status CheckAllConsumed() const;
  /// Waits until every tensor so far has been read from its file: the failure of one that has not.
  absl::Status FinishUploads() const;

 private:
  struct State {
    /// Full names.
    std::set<std::string, std::less<>> consumed;
    std::vector<std::string> ignored;
    std::set<std::string, std::less<>> patched;
    std::unique_ptr<Uploads> uploads;
  };
  /// The owner of an operand of PrepareLinear: a device either keeps it or copies it.
  MemoryOwner LinearOperandOwner() const;
  bool IsIgnored(absl::string_view full_name) const;
  bool IsPatched(absl::string_view name) const;
  /// A linear weight, changed if the patch says so.
  absl::StatusOr<Tensor> PatchedWeight(absl::string_view name, const Shape& shape);
  /// Linear weights of one input under another, each changed if the patch says so.
  absl::StatusOr<Tensor> JoinedWeight(absl::Span<const std::string> names,
                                      absl::Span<const Shape> shapes);
  /// The pool's weight of these modules as one; nullptr if it has none or the patch changes one.
  const LinearWeight* Pooled(absl::string_view key, absl::Span<const std::string> weights) const;
  /// The entry of a tensor of this shape in plain form, now marked as asked for.
  absl::StatusOr<const SafetensorsFile::Entry*> Consume(absl::string_view name, const Shape& shape);
  absl::StatusOr<Tensor> Convert(absl::string_view name, const Shape& shape, DType dtype,
                                 MemoryOwner owner);
  /// Brings the entry of this name into a tensor of its shape and any float dtype.
  absl::Status Fill(absl::string_view name, const SafetensorsFile::Entry& entry,
                    const Tensor& tensor);
  /// Several tensors under another, whose first axis counts the rows (or, if `stacked`, the
  /// tensors) of all of them.
  absl::StatusOr<Tensor> Join(absl::Span<const std::string> names, absl::Span<const Shape> shapes,
                              bool stacked, MemoryOwner owner);

  /// Weight and bias as the device's Prepare* functions want them, freed once packed.
  struct RawModule {
    Tensor weight;
    Tensor bias;
  };
  absl::StatusOr<RawModule> LoadModule(absl::string_view module, const Shape& weight_shape,
                                       int64_t out, bool bias);

  Device* device_;
  const WeightSet* weights_;
  DType compute_;
  MemoryOwner owner_;
  std::string prefix_;
  const WeightPatch* patch_ = nullptr;
  LinearPool* pool_ = nullptr;
  std::shared_ptr<State> state_;
};

}  // namespace ltx::checkpoint

#endif  // LTX_ENGINE_CHECKPOINT_WEIGHT_LOADER_H_
