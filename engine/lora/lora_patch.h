#ifndef LTX_ENGINE_LORA_LORA_PATCH_H_
#define LTX_ENGINE_LORA_LORA_PATCH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/weight_patch.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/lora/lora_file.h"

namespace ltx::lora {

/// A LoRA and how much of it.
struct WeightedLora {
  std::shared_ptr<const LoraFile> file;
  /// Any finite number; 0 leaves the file out.
  double strength = 1.0;
};

/// Several LoRAs fused into a transformer's weights while they are loaded (reference:
/// loader/fuse_loras.py). In the dtype T of the weight as it is loaded, files in their order:
///   D = T(T(B_0 s_0) @ A_0);  D = T(D + s_i (B_i @ A_i)) for every further file;  W' = T(W + D)
/// with sums in f32. The reference always takes bf16 for T; f32 weights are fused in f32 here,
/// which lies within its bounds. Biases, norms and tables stay as they are.
///
/// A fused transformer is one loaded with WeightLoader::WithPatch: the files are the clean base, so
/// nothing is ever subtracted. Two strengths of one LoRA are either two transformers, or one that
/// is loaded anew in between; changed_elements() says what a second copy shares least, for
/// distilled LoRAs nearly all of the model.
class LoraPatch final : public checkpoint::WeightPatch {
 public:
  enum class Unmatched : uint8_t {
    /// A module that the model lacks refuses the file.
    kRefuse,
    /// It is left out and counted, as the reference does; a file of which nothing matches is still
    /// refused.
    kSkip,
  };

  /// `weights` holds "<prefix><module>.weight" for every module. Both it and the files must stay as
  /// long as the patch is applied. INVALID_ARGUMENT naming file and tensor: modules that the model
  /// lacks (all of them), shapes that do not fit, a strength that is not finite; UNIMPLEMENTED for
  /// a weight in a quantised form.
  static absl::StatusOr<std::unique_ptr<LoraPatch>> Create(std::vector<WeightedLora> loras,
                                                           const checkpoint::WeightSet& weights,
                                                           absl::string_view prefix,
                                                           Unmatched unmatched);

  std::vector<std::string> Names() const override;
  bool Changes(absl::string_view name) const override;
  /// INVALID_ARGUMENT naming the weight if the result is not finite.
  absl::StatusOr<Tensor> Apply(Device& device, absl::string_view name,
                               const Tensor& weight) const override;

  /// Elements of all weights that it changes.
  int64_t changed_elements() const { return changed_elements_; }
  /// Modules that kSkip left out, sorted.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct Update {
    const LoraFile* file;
    const LoraModule* module;
    /// Strength times the module's scale.
    double factor;
  };
  LoraPatch() = default;
  absl::Status Match(const WeightedLora& lora, const checkpoint::WeightSet& weights,
                     absl::string_view prefix, Unmatched unmatched);
  static absl::Status CheckShapes(const Update& update, const Shape& weight,
                                  absl::string_view name);

  std::vector<WeightedLora> loras_;
  /// By full weight name, in the order of the files.
  std::map<std::string, std::vector<Update>, std::less<>> updates_;
  std::vector<std::string> skipped_;
  int64_t changed_elements_ = 0;
};

}  // namespace ltx::lora

#endif  // LTX_ENGINE_LORA_LORA_PATCH_H_
