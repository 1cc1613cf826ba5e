#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/pipeline/generation_job.h"
#include "tests/memory/counting_memory.h"
#include "tests/memory/tiny_model.h"

namespace ltx::testing {
namespace {

using pipeline::GenerationJob;
using pipeline::GenerationRequest;
using pipeline::Recipe;

constexpr Recipe kRecipes[] = {Recipe::kDistilled, Recipe::kDistilledOneStage};

/// One loaded model for all tests; each leaves it as it was.
class GenerationMemoryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    tiny_ = std::make_unique<TinyModel>();
    ASSERT_EQ(tiny_->Load(), absl::OkStatus());
    loaded_ = tiny_->live_bytes();
  }
  static void TearDownTestSuite() {
    tiny_->Unload();
    EXPECT_EQ(tiny_->memory().Read().live_blocks, 0);
    tiny_.reset();
  }
  void TearDown() override {
    EXPECT_EQ(tiny_->live_bytes(), loaded_);
    for (const std::string& complaint : tiny_->memory().complaints()) ADD_FAILURE() << complaint;
  }
  static void ResetPeaks() {
    tiny_->memory().ResetPeaks();
    tiny_->device().ledger().ResetPeaks();
  }

  static int64_t BytesOf(const std::vector<pipeline::FinishedFrames>& parts) {
    int64_t bytes = 0;
    for (const pipeline::FinishedFrames& part : parts) {
      bytes += part.bytes.rgb.num_bytes() + part.bytes.i420.num_bytes();
    }
    return bytes;
  }

  static std::unique_ptr<TinyModel> tiny_;
  /// Live bytes after loading.
  static int64_t loaded_;
};
std::unique_ptr<TinyModel> GenerationMemoryTest::tiny_;
int64_t GenerationMemoryTest::loaded_ = 0;

TEST_F(GenerationMemoryTest, IdleModelHoldsWeightsAndCachesOnly) {
  ExpectSameBooks(tiny_->device().ledger(), tiny_->memory());
  const MemoryLedger::Snapshot idle = tiny_->device().ledger().Read();
  for (const MemoryOwner owner :
       {MemoryOwner::kActivations, MemoryOwner::kWorkspace, MemoryOwner::kMedia}) {
    EXPECT_EQ(idle.by_owner[static_cast<int>(owner)].live_bytes, 0) << MemoryOwnerName(owner);
  }
  for (const MemoryOwner owner :
       {MemoryOwner::kWeightsText, MemoryOwner::kWeightsDit, MemoryOwner::kWeightsVideoVae,
        MemoryOwner::kWeightsAudioVae, MemoryOwner::kWeightsUpsampler}) {
    EXPECT_GT(idle.by_owner[static_cast<int>(owner)].live_bytes, 0) << MemoryOwnerName(owner);
  }
}

TEST_F(GenerationMemoryTest, LedgerAgreesWithTheAllocatorAtEveryUnit) {
  for (const Recipe recipe : kRecipes) {
    SCOPED_TRACE(std::string(pipeline::RecipeName(recipe)));
    ResetPeaks();
    const auto job = GenerationJob::Create(&tiny_->model(), tiny_->Request(recipe)).value();
    while (!job->done()) {
      ASSERT_TRUE(job->Advance().ok());
      ExpectSameBooks(tiny_->device().ledger(), tiny_->memory());
    }
    const std::vector<pipeline::FinishedFrames> frames = job->TakeFrames();
    const auto result = job->TakeResult();
    ASSERT_TRUE(result.ok());
    const CountingMemory::Totals seen = tiny_->memory().Read();
    EXPECT_GT(seen.total.peak_bytes, loaded_);
    EXPECT_GT(seen.by_owner[static_cast<int>(MemoryOwner::kActivations)].peak_bytes, 0);
    EXPECT_EQ(seen.by_owner[static_cast<int>(MemoryOwner::kMedia)].live_bytes,
              BytesOf(frames) + result->waveform.num_bytes());
  }
}

TEST_F(GenerationMemoryTest, DestroyedAfterAnyUnitTheJobLeavesNothing) {
  for (const Recipe recipe : kRecipes) {
    const GenerationRequest request = tiny_->Request(recipe);
    const int units =
        static_cast<int>(GenerationJob::Create(&tiny_->model(), request).value()->plan().size());
    ASSERT_GT(units, 10);
    for (int stop = 0; stop <= units; ++stop) {
      {
        const auto job = GenerationJob::Create(&tiny_->model(), request).value();
        for (int i = 0; i < stop; ++i) ASSERT_TRUE(job->Advance().ok());
        if (stop > 0) {
          EXPECT_GT(tiny_->live_bytes(), loaded_) << stop;
        }
      }
      EXPECT_EQ(tiny_->live_bytes(), loaded_)
          << pipeline::RecipeName(recipe) << " after " << stop << " of " << units << " units";
    }
  }
}

TEST_F(GenerationMemoryTest, SurvivesARefusedAllocationAnywhere) {
  const GenerationRequest request = tiny_->Request(Recipe::kDistilledOneStage);
  const int64_t before = tiny_->memory().Read().requests;
  const auto undisturbed = tiny_->Run(request);
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status();
  const int64_t requests = tiny_->memory().Read().requests - before;
  ASSERT_GT(requests, 200);
  // Some fifty points over the run. An odd stride meets operations that allocate in pairs at both
  // of their requests.
  const int64_t stride = std::max<int64_t>(1, requests / 50) | 1;
  int point = 0;
  for (int64_t n = 1; n <= requests; n += stride, ++point) {
    const int64_t refused = tiny_->memory().Read().refused;
    tiny_->memory().RefuseRequest(n);
    const auto run = tiny_->Run(request);
    tiny_->memory().RefuseRequest(0);
    ASSERT_EQ(tiny_->memory().Read().refused, refused + 1) << "request " << n;
    EXPECT_EQ(run.status().code(), absl::StatusCode::kResourceExhausted)
        << "request " << n << " of " << requests << ": " << run.status();
    EXPECT_EQ(tiny_->live_bytes(), loaded_) << "request " << n;
    if (point % 10 != 0) continue;
    const auto next = tiny_->Run(request);
    ASSERT_TRUE(next.ok()) << "after request " << n << ": " << next.status();
    EXPECT_TRUE(*next == *undisturbed) << "after request " << n;
  }
  const auto last = tiny_->Run(request);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(*last == *undisturbed);
}

TEST(Bf16MemoryTest, LedgerAgreesWithTheAllocator) {
  TinyModel tiny;
  ASSERT_EQ(tiny.Load(DType::kBF16), absl::OkStatus());
  ExpectSameBooks(tiny.device().ledger(), tiny.memory());
  const int64_t loaded = tiny.live_bytes();
  const GenerationRequest request = tiny.Request(Recipe::kDistilled);
  const auto first = tiny.Run(request);
  ASSERT_TRUE(first.ok()) << first.status();
  ExpectSameBooks(tiny.device().ledger(), tiny.memory());
  EXPECT_EQ(tiny.live_bytes(), loaded);
  const auto second = tiny.Run(request);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(*first == *second);
  EXPECT_EQ(tiny.live_bytes(), loaded);
}

TEST(ModelLoadMemoryTest, SurvivesARefusedAllocationAnywhere) {
  TinyModel tiny;
  ASSERT_EQ(tiny.Load(), absl::OkStatus());
  const int64_t requests = tiny.memory().Read().requests;
  const int64_t loaded = tiny.live_bytes();
  tiny.Unload();
  EXPECT_EQ(tiny.live_bytes(), 0);
  ASSERT_GT(requests, 100);
  const int64_t stride = std::max<int64_t>(1, requests / 25) | 1;
  for (int64_t n = 1; n <= requests; n += stride) {
    tiny.memory().RefuseRequest(n);
    const absl::Status status = tiny.Load();
    tiny.memory().RefuseRequest(0);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted)
        << "request " << n << " of " << requests << ": " << status;
    EXPECT_EQ(tiny.live_bytes(), 0) << "request " << n;
  }
  ASSERT_EQ(tiny.Load(), absl::OkStatus());
  EXPECT_EQ(tiny.live_bytes(), loaded);
  ExpectSameBooks(tiny.device().ledger(), tiny.memory());
}

}  // namespace
}  // namespace ltx::testing
