#include "engine/dit/transformer.h"

#include <cmath>
#include <limits>

#include "engine/dit/test_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::dit {
namespace {

using checkpoint::TransformerConfig;
using ::testing::HasSubstr;

/// Two ways to compute the same value may differ by f32 rounding alone.
constexpr double kSame = 1e-5;
/// What leaving out any term of the model moves at least.
constexpr double kDifferent = 1e-4;

class TransformerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Transformer> Model(const TransformerConfig& config,
                                     ModelClass model_class = ModelClass::kAudioVideo) {
    auto model = LoadModel(*device_, config, RandomFile(ShapesOf(config)), model_class);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  /// Both velocities one after the other.
  std::vector<float> Run(const Transformer& model, TestInputs& inputs, bool with_video = true,
                         bool with_audio = true) {
    const auto pair = inputs.Run(model, with_video, with_audio);
    EXPECT_TRUE(pair.ok()) << pair.status();
    if (!pair.ok()) return {};
    std::vector<float> values = Values(*device_, pair->video);
    const std::vector<float> audio = Values(*device_, pair->audio);
    values.insert(values.end(), audio.begin(), audio.end());
    return values;
  }

  std::string Refusal(const Transformer& model, TestInputs& inputs) {
    const auto pair = inputs.Run(model);
    EXPECT_EQ(pair.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(pair.status().message());
  }

  std::unique_ptr<cpu::CpuDevice> device_ = TestDevice();
};

TEST_F(TransformerTest, EveryTensorMatters) {
  const TransformerConfig config = SmallConfig();
  const TensorShapes shapes = ShapesOf(config);
  TestInputs inputs;
  const auto base_model = LoadModel(*device_, config, RandomFile(shapes));
  ASSERT_TRUE(base_model.ok()) << base_model.status();
  const std::vector<float> base = Run(**base_model, inputs);
  for (const auto& [name, shape] : shapes) {
    const auto file = RandomFile(shapes);
    file->Set(name, shape, std::vector<float>(shape.num_elements(), 0.0f));
    const auto model = LoadModel(*device_, config, file);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_GT(RelativeDistance(Run(**model, inputs), base), kDifferent) << name;
  }
}

TEST_F(TransformerTest, EveryTensorOfTheFirstGenerationMatters) {
  TransformerConfig config = SmallConfig();
  config.apply_gated_attention = false;
  config.cross_attention_adaln = false;
  config.use_keyframes_abs_pos_embedding = false;
  config.caption_proj_before_connector = false;
  config.caption_channels = 7;
  config.ff_bias = true;
  config.rope_type = checkpoint::RopeType::kInterleaved;
  config.num_layers = 1;
  const TensorShapes shapes = ShapesOf(config);
  TestInputs inputs;
  inputs.video_context = RandomValues(inputs.batch * inputs.context_tokens * 7, 103);
  inputs.audio_context = RandomValues(inputs.batch * inputs.context_tokens * 7, 104);
  const auto base_model = LoadModel(*device_, config, RandomFile(shapes));
  ASSERT_TRUE(base_model.ok()) << base_model.status();
  const std::vector<float> base = Run(**base_model, inputs);
  for (const auto& [name, shape] : shapes) {
    const auto file = RandomFile(shapes);
    file->Set(name, shape, std::vector<float>(shape.num_elements(), 0.0f));
    const auto model = LoadModel(*device_, config, file);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_GT(RelativeDistance(Run(**model, inputs), base), kDifferent) << name;
  }
}

TEST_F(TransformerTest, EveryNumberOfTheConfigMatters) {
  const auto base_model = Model(SmallConfig());
  TestInputs inputs;
  const std::vector<float> base = Run(*base_model, inputs);
  std::vector<std::pair<std::string, TransformerConfig>> variants(6,
                                                                  {std::string(), SmallConfig()});
  variants[0].first = "positional_embedding_theta";
  variants[0].second.positional_embedding_theta = 100.0;
  variants[1].first = "positional_embedding_max_pos";
  variants[1].second.positional_embedding_max_pos = {20, 1024, 2048};
  variants[2].first = "audio_positional_embedding_max_pos";
  variants[2].second.audio_positional_embedding_max_pos = {10};
  variants[3].first = "timestep_scale_multiplier";
  variants[3].second.timestep_scale_multiplier = 500.0;
  variants[4].first = "av_ca_timestep_scale_multiplier";
  variants[4].second.av_ca_timestep_scale_multiplier = 1.0;
  variants[5].first = "rope_type";
  variants[5].second.rope_type = checkpoint::RopeType::kInterleaved;
  for (const auto& [name, config] : variants) {
    EXPECT_GT(RelativeDistance(Run(*Model(config), inputs), base), kDifferent) << name;
  }
}

TEST_F(TransformerTest, EveryInputMatters) {
  const auto model = Model(SmallConfig());
  TestInputs base_inputs;
  const std::vector<float> base = Run(*model, base_inputs);
  const auto changes = [&](const char* what, auto change) {
    TestInputs inputs;
    change(inputs);
    EXPECT_GT(RelativeDistance(Run(*model, inputs), base), kDifferent) << what;
  };
  changes("video latent", [](TestInputs& in) { in.video_latent[3] += 1.0f; });
  changes("audio latent", [](TestInputs& in) { in.audio_latent[3] += 1.0f; });
  changes("video context", [](TestInputs& in) { in.video_context[3] += 1.0f; });
  changes("audio context", [](TestInputs& in) { in.audio_context[3] += 1.0f; });
  changes("video sigma", [](TestInputs& in) { in.video.sigma[0] = 0.3f; });
  changes("audio sigma", [](TestInputs& in) { in.audio.sigma[0] = 0.3f; });
  changes("video timestep", [](TestInputs& in) { in.video.timesteps[1] = 0.0f; });
  changes("audio timestep", [](TestInputs& in) { in.audio.timesteps[1] = 0.0f; });
  changes("video time", [](TestInputs& in) { in.video_layout.positions[2] += 3.0f; });
  changes("video row", [](TestInputs& in) { in.video_layout.positions[14] += 300.0f; });
  changes("audio time", [](TestInputs& in) { in.audio_layout.positions[2] += 3.0f; });
  changes("keyframes mask", [](TestInputs& in) { in.video_layout.keyframes_mask.clear(); });
  changes("video attention mask", [](TestInputs& in) {
    AttentionMask mask;
    mask.keys = 6;
    mask.values = {1, 1, 0.1f, 1, 1, 0};
    in.video_layout.attention_mask = mask;
  });
  changes("audio context mask", [](TestInputs& in) {
    ContextMask mask;
    mask.keys = 3;
    mask.values = {1, 1, 0};
    in.audio.context_mask = mask;
  });
  changes("video disabled", [](TestInputs& in) { in.video.enabled = false; });
  changes("audio disabled", [](TestInputs& in) { in.audio.enabled = false; });
  for (const PerturbationKind kind :
       {PerturbationKind::kSkipVideoSelfAttention, PerturbationKind::kSkipAudioSelfAttention,
        PerturbationKind::kSkipAudioToVideoAttention,
        PerturbationKind::kSkipVideoToAudioAttention}) {
    changes("perturbation", [kind](TestInputs& in) {
      in.perturbations = {{{kind, std::vector<int64_t>{1}}}, {}};
    });
  }
}

TEST_F(TransformerTest, PromptMlpIsASwitch) {
  TransformerConfig config = SmallConfig();
  TestInputs inputs;
  const std::vector<float> with = Run(*Model(config), inputs);
  config.use_prompt_adaln_single = false;
  const auto static_model = Model(config);
  const std::vector<float> without = Run(*static_model, inputs);
  EXPECT_GT(RelativeDistance(without, with), kDifferent);
}

TEST_F(TransformerTest, OneTimestepPerSampleEqualsOnePerToken) {
  const auto model = Model(SmallConfig());
  TestInputs per_token;
  TestInputs per_sample;
  per_sample.video.timesteps = per_sample.video.sigma;
  per_sample.audio.timesteps = per_sample.audio.sigma;
  EXPECT_LT(RelativeDistance(Run(*model, per_sample), Run(*model, per_token)), kSame);
}

TEST_F(TransformerTest, LayoutOfBatchOneServesAnyBatch) {
  const auto model = Model(SmallConfig());
  TestInputs shared;
  TestInputs repeated;
  for (StreamLayout* layout : {&shared.video_layout, &shared.audio_layout}) {
    layout->batch = 1;
    const int64_t axes = layout == &shared.video_layout ? 3 : 1;
    layout->positions = TestPositions(1, axes, layout->tokens);
  }
  shared.video_layout.keyframes_mask.resize(shared.video_layout.tokens);
  for (StreamLayout* layout : {&repeated.video_layout, &repeated.audio_layout}) {
    const int64_t axes = layout == &repeated.video_layout ? 3 : 1;
    layout->positions = TestPositions(1, axes, layout->tokens);
    const std::vector<float> once = layout->positions;
    layout->positions.insert(layout->positions.end(), once.begin(), once.end());
  }
  EXPECT_LT(RelativeDistance(Run(*model, shared), Run(*model, repeated)), kSame);
}

TEST_F(TransformerTest, SamplesOfABatchDoNotTouch) {
  const auto model = Model(SmallConfig());
  TestInputs inputs;
  const auto base = inputs.Run(*model);
  TestInputs changed;
  const int64_t half = static_cast<int64_t>(changed.video_latent.size()) / 2;
  changed.video_latent[half] += 1.0f;
  changed.perturbations = {{},
                           {{PerturbationKind::kSkipVideoSelfAttention, std::nullopt},
                            {PerturbationKind::kSkipAudioToVideoAttention, std::nullopt}}};
  const auto other = changed.Run(*model);
  ASSERT_TRUE(base.ok() && other.ok());
  const std::vector<float> a = Values(*device_, base->video);
  const std::vector<float> b = Values(*device_, other->video);
  const auto first = [](const std::vector<float>& v) {
    return std::vector<float>(v.begin(), v.begin() + v.size() / 2);
  };
  EXPECT_LT(RelativeDistance(first(b), first(a)), kSame);
  EXPECT_GT(RelativeDistance(b, a), kDifferent);
}

TEST_F(TransformerTest, SkippingTheWholeBatchEqualsSkippingEachSample) {
  const auto model = Model(SmallConfig());
  TestInputs whole;
  const std::vector<Perturbation> skip = {
      {PerturbationKind::kSkipVideoSelfAttention, std::vector<int64_t>{1}},
      {PerturbationKind::kSkipAudioToVideoAttention, std::nullopt}};
  whole.perturbations = {skip, skip};
  TestInputs first;
  first.perturbations = {skip, {}};
  TestInputs second;
  second.perturbations = {{}, skip};
  const auto a = whole.Run(*model);
  const auto b = first.Run(*model);
  const auto c = second.Run(*model);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  const std::vector<float> expected = Values(*device_, a->video);
  std::vector<float> mixed = Values(*device_, b->video);
  const std::vector<float> tail = Values(*device_, c->video);
  std::copy(tail.begin() + tail.size() / 2, tail.end(), mixed.begin() + mixed.size() / 2);
  EXPECT_LT(RelativeDistance(mixed, expected), kSame);
}

TEST_F(TransformerTest, BlocksBeyondTheModelMatchNothing) {
  const auto model = Model(SmallConfig());
  TestInputs base;
  TestInputs beyond;
  const std::vector<Perturbation> skip = {
      {PerturbationKind::kSkipVideoSelfAttention, std::vector<int64_t>{2, 29, -1}}};
  beyond.perturbations = {skip, skip};
  EXPECT_EQ(Run(*model, beyond), Run(*model, base));
}

TEST_F(TransformerTest, SingleStreamModelsEqualTheAbsentOtherStream) {
  const auto both = Model(SmallConfig());
  const auto video = Model(SmallConfig(), ModelClass::kVideoOnly);
  const auto audio = Model(SmallConfig(), ModelClass::kAudioOnly);
  TestInputs inputs;
  EXPECT_LT(RelativeDistance(Run(*video, inputs, true, false), Run(*both, inputs, true, false)),
            kSame);
  EXPECT_LT(RelativeDistance(Run(*audio, inputs, false, true), Run(*both, inputs, false, true)),
            kSame);
}

TEST_F(TransformerTest, AStreamWithoutTokensCountsAsAbsent) {
  const auto model = Model(SmallConfig());
  TestInputs inputs;
  const std::vector<float> alone = Run(*model, inputs, true, false);
  inputs.audio_layout.tokens = 0;
  inputs.audio_layout.positions.clear();
  inputs.audio_latent.clear();
  inputs.audio.timesteps = inputs.audio.sigma;
  const auto pair = inputs.Run(*model);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->audio.shape(), (Shape{2, 0, 3}));
  EXPECT_LT(RelativeDistance(Values(*device_, pair->video), alone), kSame);
}

TEST_F(TransformerTest, ADisabledStreamKeepsItsStateAndFeedsTheOther) {
  const auto model = Model(SmallConfig());
  TestInputs inputs;
  inputs.audio.enabled = false;
  std::map<std::string, std::vector<float>> stages;
  ASSERT_TRUE(inputs.Upload(*model).ok());
  const auto pair = model->Forward(&inputs.video, &inputs.audio, {},
                                   [&](absl::string_view name, const Tensor& tensor) {
                                     stages[std::string(name)] = Values(*device_, tensor);
                                   });
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(stages.at("block1_audio"), stages.at("audio_x"));
  EXPECT_NE(stages.at("block1_video"), stages.at("video_x"));
  TestInputs absent;
  const std::vector<float> alone = Run(*model, absent, true, false);
  EXPECT_GT(RelativeDistance(Values(*device_, pair->video), alone), kDifferent);
}

TEST_F(TransformerTest, SigmaOfOneValueServesTheBatch) {
  const auto model = Model(SmallConfig());
  TestInputs one;
  one.audio.sigma = {0.6f};
  TestInputs two;
  two.audio.sigma = {0.6f, 0.6f};
  EXPECT_LT(RelativeDistance(Run(*model, one), Run(*model, two)), kSame);
}

TEST_F(TransformerTest, TheKeyframeBiasMayBeMissing) {
  const TransformerConfig config = SmallConfig();
  const TensorShapes shapes = ShapesOf(config);
  const auto zeros = RandomFile(shapes);
  zeros->Set("keyframes_abs_pos_embedding", {1, 16}, std::vector<float>(16, 0.0f));
  const auto missing = RandomFile(shapes);
  missing->Remove("keyframes_abs_pos_embedding");
  const auto a = LoadModel(*device_, config, zeros);
  const auto b = LoadModel(*device_, config, missing);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE((*a)->has_keyframe_bias());
  EXPECT_FALSE((*b)->has_keyframe_bias());
  TestInputs inputs;
  EXPECT_LT(RelativeDistance(Run(**b, inputs), Run(**a, inputs)), kSame);

  inputs.video_layout.has_keyframe_slots = true;
  EXPECT_TRUE(inputs.Run(**a).ok());
  EXPECT_THAT(Refusal(**b, inputs), HasSubstr("use_keyframes_abs_pos_embedding"));
}

TEST_F(TransformerTest, Bfloat16StaysNearFloat32) {
  const TransformerConfig config = SmallConfig();
  checkpoint::WeightSet weights;
  ASSERT_TRUE(weights.Add(RandomFile(ShapesOf(config))).ok());
  const auto narrow = Transformer::Load(
      config, ModelClass::kAudioVideo,
      checkpoint::WeightLoader(device_.get(), &weights, DType::kBF16, MemoryOwner::kWeightsDit));
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  TestInputs inputs;
  const std::vector<float> a = Run(**narrow, inputs);
  const std::vector<float> b = Run(*Model(config), inputs);
  const double distance = RelativeDistance(a, b);
  EXPECT_LT(distance, 0.05);
  EXPECT_GT(distance, 1e-5);
}

TEST_F(TransformerTest, RequestErrorsNameTheField) {
  const auto model = Model(SmallConfig());
  const auto refusal = [&](auto change) {
    TestInputs inputs;
    change(inputs);
    return Refusal(*model, inputs);
  };
  EXPECT_THAT(refusal([](TestInputs& in) {
                in.audio.sigma = {0.1f, 0.2f, 0.3f};
              }),
              HasSubstr("audio.sigma holds 3 values; 1 or 2 (the batch)"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.video.sigma[1] = std::nanf(""); }),
              HasSubstr("video.sigma[1] is nan"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.video.timesteps.pop_back(); }),
              HasSubstr("video.timesteps holds 11 values; 2 (one per batch row) or 12"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.audio_layout.positions.resize(24 * 2); }),
              HasSubstr("audio positions hold 48 values; [2, 1, 4, 2] needs 16"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.video_context.resize(2 * 3 * 8); }),
              HasSubstr("video.context width is 8; it must be 16"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.perturbations.resize(3); }),
              HasSubstr("perturbations length is 3; it must be 2"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.video_layout.keyframes_mask.pop_back(); }),
              HasSubstr("video.keyframes_mask length is 11; it must be 12"));
  EXPECT_THAT(refusal([](TestInputs& in) { in.video.context_mask = ContextMask(); }),
              HasSubstr("video.context_mask is [1, 1, 0] with 0 values"));
}

TEST_F(TransformerTest, SharedContextsEqualRepeatedOnes) {
  const auto model = Model(SmallConfig());
  TestInputs repeated(3);
  for (std::vector<float>* sigma : {&repeated.video.sigma, &repeated.audio.sigma}) {
    *sigma = {0.8f, 0.6f, 0.8f};
  }
  TestInputs shared = repeated;
  // Samples 0 and 2 have the first text, sample 1 the second.
  for (std::vector<float>* context : {&repeated.video_context, &repeated.audio_context}) {
    const size_t one = context->size() / 3;
    std::copy(context->begin(), context->begin() + one, context->begin() + 2 * one);
  }
  ASSERT_TRUE(shared.Upload(*model).ok());
  for (Modality* modality : {&shared.video, &shared.audio}) {
    modality->context = *modality->context.Rows(0, 2);
    modality->context_rows = {0, 1, 0};
  }
  const std::vector<float> expected = Run(*model, repeated);
  const auto pair = model->Forward(&shared.video, &shared.audio);
  ASSERT_TRUE(pair.ok()) << pair.status();
  std::vector<float> values = Values(*device_, pair->video);
  const std::vector<float> audio = Values(*device_, pair->audio);
  values.insert(values.end(), audio.begin(), audio.end());
  EXPECT_LT(RelativeDistance(values, expected), kSame);

  // Neighbours join into one sequence of queries.
  shared.video.context_rows = shared.audio.context_rows = {0, 0, 1};
  EXPECT_THAT(model->Forward(&shared.video, &shared.audio).status().message(),
              HasSubstr("video.sigma[1] is 0.6; samples that share a context must have one sigma"));
  shared.video.sigma = shared.audio.sigma = {0.8f, 0.8f, 0.6f};
  EXPECT_TRUE(model->Forward(&shared.video, &shared.audio).ok());
  shared.video.context_rows = {0, 0, 2};
  EXPECT_THAT(model->Forward(&shared.video, &shared.audio).status().message(),
              HasSubstr("video.context_rows[2] is 2; 0 to 1 would be legal"));
}

TEST_F(TransformerTest, BatchesOfBothStreamsMustAgree) {
  const auto model = Model(SmallConfig());
  TestInputs two(2);
  TestInputs three(3);
  ASSERT_TRUE(two.Upload(*model).ok() && three.Upload(*model).ok());
  EXPECT_THAT(model->Forward(&two.video, &three.audio).status().message(),
              HasSubstr("audio.latent batch is 3; it must be 2"));
  EXPECT_THAT(model->Forward(nullptr, nullptr).status().message(), HasSubstr("neither video"));
}

TEST_F(TransformerTest, AudioRequestOnAVideoModel) {
  const auto both = Model(SmallConfig());
  const auto video = Model(SmallConfig(), ModelClass::kVideoOnly);
  TestInputs inputs;
  ASSERT_TRUE(inputs.Upload(*both).ok());
  EXPECT_THAT(video->Forward(&inputs.video, &inputs.audio).status().message(),
              HasSubstr("audio tokens were given to a model that has no audio stream"));
}

TEST_F(TransformerTest, WeightErrorsNameTheTensor) {
  const TransformerConfig config = SmallConfig();
  const TensorShapes shapes = ShapesOf(config);
  const auto missing = RandomFile(shapes);
  missing->Remove("transformer_blocks.1.audio_attn2.to_v.bias");
  const auto without = LoadModel(*device_, config, missing);
  EXPECT_EQ(without.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(without.status().message(), HasSubstr("transformer_blocks.1.audio_attn2.to_v.bias"));

  const auto wrong = RandomFile(shapes);
  wrong->Set("proj_out.weight", {5, 8}, std::vector<float>(40));
  const auto misshapen = LoadModel(*device_, config, wrong);
  EXPECT_EQ(misshapen.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(misshapen.status().message(), HasSubstr("proj_out.weight"));

  const auto extra = RandomFile(shapes);
  extra->Set("transformer_blocks.2.attn1.to_q.weight", {16, 16}, std::vector<float>(256));
  extra->Set("video_embeddings_connector.norm.weight", {4}, std::vector<float>(4));
  const auto unknown = LoadModel(*device_, config, extra);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), HasSubstr("transformer_blocks.2.attn1.to_q.weight"));
  EXPECT_THAT(unknown.status().message(), ::testing::Not(HasSubstr("connector")));

  // A bias that the config rules out is unknown too, also beside a left-out stream.
  for (const ModelClass model_class : {ModelClass::kAudioVideo, ModelClass::kVideoOnly}) {
    const auto biased = RandomFile(shapes);
    biased->Set("transformer_blocks.0.ff.net.2.bias", {16}, std::vector<float>(16));
    EXPECT_THAT(LoadModel(*device_, config, biased, model_class).status().message(),
                HasSubstr("transformer_blocks.0.ff.net.2.bias"));
  }
}

TEST_F(TransformerTest, ConfigErrorsNameTheKey) {
  TransformerConfig config = SmallConfig();
  config.cross_attention_dim = 24;
  EXPECT_THAT(LoadModel(*device_, config, RandomFile(ShapesOf(config))).status().message(),
              HasSubstr("transformer.cross_attention_dim is 24; it must be 16"));
  config = SmallConfig();
  config.audio_num_attention_heads = 1;
  config.audio_attention_head_dim = 8;
  EXPECT_THAT(LoadModel(*device_, config, RandomFile(ShapesOf(config))).status().message(),
              HasSubstr("transformer.audio_num_attention_heads is 1; it must be 2"));
}

}  // namespace
}  // namespace ltx::dit
