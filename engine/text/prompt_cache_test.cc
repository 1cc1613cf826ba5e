#include "engine/text/prompt_cache.h"

#include <memory>
#include <string>
#include <vector>

#include "engine/text/test_models.h"
#include "gtest/gtest.h"
#include "kernels/host_copy.h"

namespace ltx::text {
namespace {

/// Two tensors of 4 and 2 floats.
constexpr int64_t kEntryBytes = 24;

class PromptCacheTest : public ::testing::Test {
 protected:
  PromptCache::Encode Encoder() {
    return [this](absl::string_view prompt) -> absl::StatusOr<PromptContexts> {
      ++encoded_;
      if (prompt == "bad") return absl::InvalidArgumentError("bad prompt");
      const float x = static_cast<float>(prompt.size());
      PromptContexts contexts;
      contexts.video = *TensorFromFloats(*device_, {x, x + 1, x + 2, x + 3}, {1, 2, 2});
      contexts.audio = *TensorFromFloats(*device_, {-x, -x - 1}, {1, 2, 1});
      contexts.num_tokens = static_cast<int64_t>(prompt.size());
      return contexts;
    };
  }
  int64_t Live(MemoryOwner owner) const {
    return device_->ledger().Read().by_owner[static_cast<int>(owner)].live_bytes;
  }

  std::unique_ptr<Device> device_ = MakeDevice();
  int encoded_ = 0;
};

TEST_F(PromptCacheTest, AnEqualPromptIsEncodedOnce) {
  PromptCache cache(device_.get(), 10 * kEntryBytes);
  const PromptContexts first = *cache.Get("a cat", Encoder());
  const PromptContexts second = *cache.Get("a cat", Encoder());
  EXPECT_EQ(encoded_, 1);
  EXPECT_EQ(*ToFloats(*device_, first.video), *ToFloats(*device_, second.video));
  EXPECT_EQ(*ToFloats(*device_, second.audio), (std::vector<float>{-5, -6}));
  EXPECT_EQ(second.num_tokens, 5);
  EXPECT_TRUE(cache.Get("a dog", Encoder()).ok());
  EXPECT_EQ(encoded_, 2);
  const PromptCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.entries, 2);
  EXPECT_EQ(stats.bytes, 2 * kEntryBytes);
}

TEST_F(PromptCacheTest, TheLedgerKnowsWhatIsKept) {
  PromptCache cache(device_.get(), 10 * kEntryBytes);
  EXPECT_TRUE(cache.Get("a", Encoder()).ok());
  EXPECT_TRUE(cache.Get("bb", Encoder()).ok());
  EXPECT_EQ(Live(MemoryOwner::kCache), 2 * kEntryBytes);
  EXPECT_EQ(Live(MemoryOwner::kActivations), 0);
  cache.Clear();
  EXPECT_EQ(Live(MemoryOwner::kCache), 0);
  EXPECT_EQ(cache.stats().entries, 0);
}

TEST_F(PromptCacheTest, TheLeastRecentlyUsedGoesFirst) {
  PromptCache cache(device_.get(), 2 * kEntryBytes);
  for (const char* prompt : {"a", "bb", "a", "ccc"}) EXPECT_TRUE(cache.Get(prompt, Encoder()).ok());
  EXPECT_EQ(encoded_, 3);
  EXPECT_EQ(Live(MemoryOwner::kCache), 2 * kEntryBytes);
  EXPECT_TRUE(cache.Get("a", Encoder()).ok());
  EXPECT_EQ(encoded_, 3);
  EXPECT_TRUE(cache.Get("bb", Encoder()).ok());
  EXPECT_EQ(encoded_, 4);
}

TEST_F(PromptCacheTest, AJobKeepsWhatWasEvicted) {
  PromptCache cache(device_.get(), kEntryBytes);
  const PromptContexts held = *cache.Get("a", Encoder());
  EXPECT_TRUE(cache.Get("bb", Encoder()).ok());
  EXPECT_EQ(*ToFloats(*device_, held.video), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(PromptCacheTest, WithoutABudgetNothingIsKept) {
  PromptCache off(device_.get(), 0);
  PromptCache small(device_.get(), kEntryBytes - 1);
  for (PromptCache* cache : {&off, &small}) {
    EXPECT_TRUE(cache->Get("a", Encoder()).ok());
    EXPECT_TRUE(cache->Get("a", Encoder()).ok());
    EXPECT_EQ(cache->stats().hits, 0);
    EXPECT_EQ(cache->stats().bytes, 0);
  }
  EXPECT_EQ(encoded_, 4);
  EXPECT_EQ(Live(MemoryOwner::kCache), 0);
}

TEST_F(PromptCacheTest, FailuresAreNotKept) {
  PromptCache cache(device_.get(), 10 * kEntryBytes);
  EXPECT_EQ(cache.Get("bad", Encoder()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Get("bad", Encoder()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encoded_, 2);
  EXPECT_EQ(cache.stats().entries, 0);
}

}  // namespace
}  // namespace ltx::text
