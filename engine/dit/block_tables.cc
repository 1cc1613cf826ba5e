#include "engine/dit/block_tables.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/dit/table_rows.h"
#include "kernels/status_macros.h"

namespace ltx::dit {

absl::StatusOr<BlockModulation> StreamModulations::Of(Device& device, int64_t block) const {
  BlockModulation modulation;
  LTX_ASSIGN_OR_RETURN(modulation.main, main_.Of(device, block));
  if (has_prompt_) {
    LTX_ASSIGN_OR_RETURN(modulation.prompt, prompt_.Of(device, block));
  }
  if (has_cross_) {
    LTX_ASSIGN_OR_RETURN(modulation.cross, cross_.Of(device, block));
    LTX_ASSIGN_OR_RETURN(modulation.cross_gate, cross_gate_.Of(device, block));
  }
  return modulation;
}

absl::StatusOr<BlockTables> BlockTables::Load(checkpoint::WeightLoader loader, StreamKind kind,
                                              const StreamConfig& config, bool cross, int64_t first,
                                              int64_t count) {
  BlockTables tables;
  tables.width_ = config.width;
  const absl::string_view prefix = kind == StreamKind::kVideo ? "" : "audio_";
  const auto stack = [&](const std::string& name, int64_t rows) -> absl::StatusOr<Tensor> {
    std::vector<std::string> names;
    for (int64_t i = first; i < first + count; ++i) {
      names.push_back(absl::StrCat("transformer_blocks.", i, ".", name));
    }
    LTX_ASSIGN_OR_RETURN(const Tensor stacked, loader.GetStacked(names, {rows, config.width}));
    return stacked.Reshape({count, rows * config.width});
  };
  LTX_ASSIGN_OR_RETURN(tables.main_,
                       stack(absl::StrCat(prefix, "scale_shift_table"), config.table_rows()));
  if (config.cross_attention_adaln) {
    LTX_ASSIGN_OR_RETURN(tables.prompt_,
                         stack(absl::StrCat(prefix, "prompt_scale_shift_table"), kPromptRows));
  }
  if (cross) {
    LTX_ASSIGN_OR_RETURN(tables.cross_,
                         stack(absl::StrCat("scale_shift_table_a2v_ca_", StreamName(kind)),
                               kCrossScaleShiftRows + 1));
  }
  return tables;
}

absl::StatusOr<StreamModulations> BlockTables::AddTo(Device& device,
                                                     const SharedModulation& shared) const {
  StreamModulations all;
  LTX_ASSIGN_OR_RETURN(all.main_, BlockModulations::Make(device, shared.main, main_, width_));
  if (prompt_.defined()) {
    all.has_prompt_ = true;
    LTX_ASSIGN_OR_RETURN(all.prompt_,
                         BlockModulations::Make(device, shared.prompt, prompt_, width_));
  }
  if (cross_.defined() && shared.cross.defined()) {
    all.has_cross_ = true;
    const int64_t scale_shift = kCrossScaleShiftRows * width_;
    LTX_ASSIGN_OR_RETURN(
        all.cross_,
        BlockModulations::Make(device, shared.cross, Columns(cross_, 0, scale_shift), width_));
    LTX_ASSIGN_OR_RETURN(all.cross_gate_,
                         BlockModulations::Make(device, shared.cross_gate,
                                                Columns(cross_, scale_shift, width_), width_));
  }
  return all;
}

}  // namespace ltx::dit
