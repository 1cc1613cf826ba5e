#ifndef LTX_ENGINE_LORA_LORA_FILE_H_
#define LTX_ENGINE_LORA_LORA_FILE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/safetensors.h"

namespace ltx::lora {

struct LoraOptions {
  /// The reference never reads a file's alpha; files that its trainer writes have none.
  bool ignore_alpha = false;
};

/// The low-rank update of one module's weight: W + scale * up @ down.
struct LoraModule {
  /// A: [rank, in], and its name in the file.
  const checkpoint::SafetensorsFile::Entry* down = nullptr;
  std::string down_name;
  /// B: [out, rank].
  const checkpoint::SafetensorsFile::Entry* up = nullptr;
  std::string up_name;
  /// alpha / rank if the file has an alpha for the module and it counts, else 1.
  double scale = 1.0;

  int64_t rank() const { return down->shape.dim(0); }
};

/// A LoRA file: factors under `[prefix]<module>.<factor>`, where the prefix is one of
/// "diffusion_model.", "model.diffusion_model.", "transformer.", each possibly behind
/// "base_model.model.", or nothing; the factors are lora_A.weight and lora_B.weight, or
/// lora_down.weight and lora_up.weight, and optionally alpha.
class LoraFile {
 public:
  /// INVALID_ARGUMENT naming file and tensors: names that are none of a LoRA (all of them), one
  /// factor without the other, two tensors for one factor, shapes or dtypes that are no factors,
  /// an alpha that is no finite number, a file without any module.
  static absl::StatusOr<std::shared_ptr<const LoraFile>> Parse(
      std::shared_ptr<const checkpoint::SafetensorsFile> file, const LoraOptions& options);

  const std::string& path() const { return file_->path(); }
  /// By module name of the transformer, e.g. "transformer_blocks.0.attn1.to_q".
  const std::map<std::string, LoraModule, std::less<>>& modules() const { return modules_; }
  /// Modules of the text side (connectors, text projection), sorted. The reference fuses them
  /// nowhere, and neither is done here.
  const std::vector<std::string>& text_modules() const { return text_modules_; }
  /// Modules whose alpha scales them.
  int alpha_count() const { return alpha_count_; }

 private:
  explicit LoraFile(std::shared_ptr<const checkpoint::SafetensorsFile> file)
      : file_(std::move(file)) {}
  absl::Status Read(const LoraOptions& options);

  const std::shared_ptr<const checkpoint::SafetensorsFile> file_;
  std::map<std::string, LoraModule, std::less<>> modules_;
  std::vector<std::string> text_modules_;
  int alpha_count_ = 0;
};

}  // namespace ltx::lora

#endif  // LTX_ENGINE_LORA_LORA_FILE_H_
