#ifndef LTX_ENGINE_PIPELINE_MODEL_H_
#define LTX_ENGINE_PIPELINE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/model_set.h"
#include "engine/pipeline/fused_cache.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/request_defaults.h"
#include "engine/text/prompt_cache.h"
#include "kernels/device.h"

namespace ltx::pipeline {

struct ModelParts;

struct ModelOptions {
  /// kF32 or kBF16: weights, activations and latents of everything but the vocoder, which always
  /// computes in f32.
  DType compute_dtype = DType::kBF16;
  /// Whether the transformer's forwards are recorded and replayed on a device that can.
  bool record_forwards = true;
  /// Over what the set says of itself: nothing in a transformer file tells the two apart.
  std::optional<checkpoint::ModelKind> kind;
  /// Device memory for the contexts of the prompts seen last; 0: every job encodes its prompt.
  int64_t prompt_cache_bytes = 0;
  /// What tells the text model how to rewrite a prompt; empty: requests for it are refused. Takes
  /// device memory of the size of the text model's embedding table where that model can write.
  std::string enhancement_system_prompt;
  /// Device memory for transformers with the distilled LoRA in them, between jobs; 0: every job
  /// fuses anew. Whoever plans memory may change it, see fused_cache().
  int64_t fused_cache_bytes = 0;
  /// Of another model of the same files, so that it need not be made again.
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

/// A model set on a device: text encoder, transformer, VAE decoder, spatial upsampler and duration
/// head (if there are any), audio decoder and vocoder. Immutable after loading; jobs borrow it.
/// Like its device it is driven by one thread at a time.
class Model {
 public:
  /// Loads the files of an opened (hence checked) set onto `device`, which must outlive the model.
  /// NOT_FOUND or INVALID_ARGUMENT naming file and tensor, UNIMPLEMENTED for a form that is not
  /// supported, RESOURCE_EXHAUSTED when the device is too small.
  static absl::StatusOr<std::unique_ptr<Model>> Load(Device* device,
                                                     const checkpoint::ModelSet& files,
                                                     const ModelOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Device& device() const { return *device_; }
  DType compute_dtype() const { return compute_dtype_; }
  /// What it was loaded with, defaults of the caller included.
  const ModelOptions& options() const { return options_; }

  /// The set's name, e.g. "ltx-tiny".
  const std::string& name() const { return name_; }
  checkpoint::ModelKind kind() const { return kind_; }
  /// `model_version` of the transformer file, e.g. "2.5.1"; empty if it has none.
  const std::string& version() const { return version_; }
  const RequestLimits& limits() const { return limits_; }
  /// Recipes that this set is made for and has the files of; the first is the default.
  const std::vector<Recipe>& recipes() const { return recipes_; }
  /// Samples per second of the waveform.
  int64_t sample_rate() const;

  const RequestDefaults& defaults() const { return defaults_; }
  /// A request with the defaults filled in: prompt empty, first recipe.
  GenerationRequest DefaultRequest() const { return defaults_.For(defaults_.recipe); }

  /// ValidateRequest with this model's limits, and whether the set can run the recipe
  /// (FAILED_PRECONDITION, MODEL_KIND_MISMATCH or COMPONENT_MISSING naming the file).
  absl::Status Validate(const GenerationRequest& request) const;

  /// Whether prompts can be enhanced: FAILED_PRECONDITION (MODEL_KIND_MISMATCH or
  /// COMPONENT_MISSING) saying why not.
  absl::Status CheckEnhancement() const;

  /// Spends time that nobody waits for: one step of Device::Improve, or, when that has nothing
  /// left, of bringing recorded forwards up to date. False if there is nothing to do. On an idle
  /// device.
  absl::StatusOr<bool> Improve() const;

  /// What the cache of prompts has done and holds. Any thread.
  text::PromptCache::Stats prompt_cache_stats() const;

  /// The kept transformers with the distilled LoRA in them; null if the set has none.
  FusedCache* fused_cache() const;

  /// The components, for the jobs of this package.
  const ModelParts& parts() const { return *parts_; }

 private:
  Model();
  /// Name, kind, version, defaults and limits.
  absl::Status Describe(const checkpoint::ModelSet& files, const ModelOptions& options);
  /// The prompt enhancer, where it can be had.
  absl::Status LoadEnhancer();
  /// UNIMPLEMENTED if the VAE or the upsampler counts in other steps than the recipes.
  absl::Status CheckGrid() const;
  /// FAILED_PRECONDITION if the set cannot run the recipe.
  absl::Status CheckRecipe(const RecipeTraits& recipe) const;

  Device* device_ = nullptr;
  DType compute_dtype_ = DType::kF32;
  ModelOptions options_;
  std::string name_, version_;
  checkpoint::ModelKind kind_ = checkpoint::ModelKind::kDev;
  RequestDefaults defaults_;
  RequestLimits limits_;
  std::vector<Recipe> recipes_;
  std::unique_ptr<ModelParts> parts_;
};

}  // namespace ltx::pipeline

#endif  // LTX_ENGINE_PIPELINE_MODEL_H_
