#include "engine/dit/stream_block.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/dit/table_rows.h"
#include "kernels/status_macros.h"

namespace ltx::dit {
namespace {

/// Hidden width of the feed-forward over the stream's width; no config key holds it.
constexpr int64_t kFeedForwardExpansion = 4;

void Observe(const StageObserver& observer, absl::string_view prefix, absl::string_view name,
             const Tensor& tensor) {
  if (observer) observer(absl::StrCat(prefix, name), tensor);
}

}  // namespace

absl::Status UpdateAndRead(Device& device, Tensor* x, const ResidualUpdate& update, float epsilon,
                           absl::Span<const StateReading> readings) {
  std::vector<NormReading> wanted;
  wanted.reserve(readings.size());
  for (const auto& [reading, target] : readings) wanted.push_back(reading);
  LTX_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                       device.ResidualNorm(x, update, epsilon, wanted));
  for (size_t i = 0; i < readings.size(); ++i) *readings[i].second = std::move(results[i]);
  return absl::OkStatus();
}

NormReading SelfReading(const Modulation& modulation) {
  return {modulation.At(kSelfScale), modulation.At(kSelfShift)};
}

absl::StatusOr<StreamBlock> StreamBlock::Load(checkpoint::WeightLoader loader, StreamKind kind,
                                              const StreamConfig& config) {
  StreamBlock block;
  block.config_ = config;
  block.kind_ = kind;
  block.prefix_ = kind == StreamKind::kVideo ? "" : "audio_";
  const std::string& prefix = block.prefix_;
  AttentionConfig attention;
  attention.query_dim = config.width;
  attention.context_dim = config.width;
  attention.heads = config.heads;
  attention.head_dim = config.head_dim;
  attention.epsilon = config.epsilon;
  attention.gated = config.gated_attention;
  LTX_ASSIGN_OR_RETURN(block.text_attention_,
                       GatedAttention::Load(loader.Sub(absl::StrCat(prefix, "attn2.")), attention));
  attention.self = true;
  LTX_ASSIGN_OR_RETURN(block.self_attention_,
                       GatedAttention::Load(loader.Sub(absl::StrCat(prefix, "attn1.")), attention));
  const int64_t hidden = kFeedForwardExpansion * config.width;
  LTX_ASSIGN_OR_RETURN(block.ff_in_, loader.Linear(absl::StrCat(prefix, "ff.net.0.proj"),
                                                   config.width, hidden, config.ff_bias));
  LTX_ASSIGN_OR_RETURN(block.ff_out_, loader.Linear(absl::StrCat(prefix, "ff.net.2"), hidden,
                                                    config.width, config.ff_bias));
  return block;
}

absl::Status StreamBlock::AttendSelfAndText(Device& device, const BlockInput& input,
                                            StreamState* state,
                                            absl::Span<const StateReading> readings,
                                            const StageObserver& observer) const {
  const Modulation& modulation = input.modulation.main;
  if (!state->self_input.defined()) {
    LTX_RETURN_IF_ERROR(UpdateAndRead(device, &state->x, {}, config_.epsilon,
                                      {{SelfReading(modulation), &state->self_input}}));
  }
  AttentionInputs inputs;
  inputs.x = std::exchange(state->self_input, Tensor());
  Observe(observer, prefix_, "attn1_in", inputs.x);
  inputs.bias = input.stream->self_bias;
  inputs.rope = input.stream->rope;
  inputs.keep = input.keep.self_attention;
  ResidualUpdate update;
  LTX_ASSIGN_OR_RETURN(update.value, self_attention_.Forward(device, std::move(inputs)));
  Observe(observer, prefix_, "attn1_out", update.value);
  update.gate = modulation.At(kSelfGate);

  NormReading text;
  if (config_.cross_attention_adaln) {
    text = {modulation.At(kTextScale), modulation.At(kTextShift)};
  }
  Tensor text_input;
  LTX_RETURN_IF_ERROR(
      UpdateAndRead(device, &state->x, update, config_.epsilon, {{text, &text_input}}));
  update.value = Tensor();
  Observe(observer, StreamName(kind_), "_after_self", state->x);
  return AttendText(device, input, text_input, state, readings, observer);
}

absl::Status StreamBlock::AttendText(Device& device, const BlockInput& input, const Tensor& reading,
                                     StreamState* state, absl::Span<const StateReading> readings,
                                     const StageObserver& observer) const {
  AttentionInputs inputs;
  inputs.x = reading;
  inputs.bias = input.stream->context_bias;
  inputs.context = input.stream->context;
  inputs.context_rows = input.stream->context_rows;
  if (config_.cross_attention_adaln) {
    const Modulation& prompt = input.modulation.prompt;
    LTX_ASSIGN_OR_RETURN(inputs.context, device.Modulate(inputs.context, prompt.At(kPromptScale),
                                                         prompt.At(kPromptShift)));
  }
  Observe(observer, prefix_, "attn2_in", inputs.x);
  Observe(observer, prefix_, "attn2_kv_in", inputs.context);
  ResidualUpdate update;
  LTX_ASSIGN_OR_RETURN(update.value, text_attention_.Forward(device, std::move(inputs)));
  Observe(observer, prefix_, "attn2_out", update.value);
  if (config_.cross_attention_adaln) update.gate = input.modulation.main.At(kTextGate);
  LTX_RETURN_IF_ERROR(UpdateAndRead(device, &state->x, update, config_.epsilon, readings));
  Observe(observer, StreamName(kind_), "_after_text", state->x);
  return absl::OkStatus();
}

NormReading StreamBlock::FeedForwardReading(const BlockInput& input) const {
  const Modulation& modulation = input.modulation.main;
  return {modulation.At(kFeedForwardScale), modulation.At(kFeedForwardShift)};
}

absl::Status StreamBlock::FeedForward(Device& device, const BlockInput& input, Tensor reading,
                                      StreamState* state, const StageObserver& observer) const {
  Observe(observer, prefix_, "ff_in", reading);
  LinearOptions gelu;
  gelu.activation = Activation::kGeluTanh;
  ResidualUpdate update;
  {
    LTX_ASSIGN_OR_RETURN(const Tensor hidden, device.Linear(reading, ff_in_, gelu));
    reading = Tensor();  // Its memory serves the output.
    LTX_ASSIGN_OR_RETURN(update.value, device.Linear(hidden, ff_out_));
  }
  Observe(observer, prefix_, "ff_out", update.value);
  update.gate = input.modulation.main.At(kFeedForwardGate);
  std::vector<StateReading> readings;
  if (input.next_modulation.defined()) {
    readings.push_back({SelfReading(input.next_modulation), &state->self_input});
  }
  return UpdateAndRead(device, &state->x, update, config_.epsilon, readings);
}

}  // namespace ltx::dit
