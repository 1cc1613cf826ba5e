#include "tools/random_model/random_file.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "engine/checkpoint/model_manifest.h"
#include "kernels/status_macros.h"

namespace ltx::random_model {
namespace {

/// Tensors of a shared buffer begin at multiples of this many elements, a prime number of pages
/// apart, so that no two layers are alike.
constexpr int64_t kStep = int64_t{2048} * 7;
constexpr int64_t kSteps = 31;
/// What a thread fills at a time.
constexpr int64_t kPieceValues = int64_t{1} << 19;

void FillInParallel(const ValueRange& range, uint64_t seed, std::vector<BFloat16>* values) {
  const auto count = static_cast<int64_t>(values->size());
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t at = next++ * kPieceValues; at < count; at = next++ * kPieceValues) {
      FillRandom(range, seed, at,
                 absl::MakeSpan(values->data() + at, std::min(kPieceValues, count - at)));
    }
  };
  const int64_t pieces = (count + kPieceValues - 1) / kPieceValues;
  std::vector<std::thread> helpers;
  for (int64_t i = 1; i < std::min<int64_t>(std::thread::hardware_concurrency(), pieces); ++i) {
    helpers.emplace_back(work);
  }
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

RandomFile::RandomFile(FileLayout layout) : texts_(std::move(layout.texts)) {
  path_ = layout.path;
  for (const auto& [name, value] : layout.metadata) metadata_[name] = value;
  std::map<ValueRange, int64_t> largest;
  for (const auto& [name, shape] : layout.tensors) {
    int64_t& size = largest[RangeOf(name, shape)];
    size = std::max(size, shape.num_elements());
  }
  uint64_t seed = 0;
  for (const auto& [range, size] : largest) {
    std::vector<BFloat16>& buffer = buffers_[range];
    buffer.resize(size + kSteps * kStep);
    FillInParallel(range, seed++, &buffer);
  }
  int64_t step = 0;
  for (const auto& [name, shape] : layout.tensors) {
    const std::vector<BFloat16>& buffer = buffers_[RangeOf(name, shape)];
    const auto* const first = reinterpret_cast<const uint8_t*>(buffer.data() + step * kStep);
    step = (step + 1) % kSteps;
    const int64_t bytes = shape.num_elements() * SizeOf(DType::kBF16);
    entries_[name] = {DType::kBF16, shape, absl::MakeConstSpan(first, bytes)};
    tensor_bytes_ += bytes;
  }
  for (const auto& [name, text] : texts_) {
    const auto* const first = reinterpret_cast<const uint8_t*>(text.data());
    entries_[name] = {
        DType::kU8, {static_cast<int64_t>(text.size())}, absl::MakeConstSpan(first, text.size())};
    tensor_bytes_ += static_cast<int64_t>(text.size());
  }
  file_bytes_ = tensor_bytes_;
}

absl::StatusOr<checkpoint::ModelSet> RandomModelSet(const ModelSize& size) {
  LTX_ASSIGN_OR_RETURN(std::vector<FileLayout> layouts, FilesOf(size));
  std::vector<std::shared_ptr<const checkpoint::SafetensorsFile>> files;
  for (FileLayout& layout : layouts) {
    files.push_back(std::make_shared<RandomFile>(std::move(layout)));
  }
  checkpoint::ModelManifest manifest;
  manifest.name = "random";
  manifest.kind = checkpoint::ModelKind::kDistilled;
  return checkpoint::ModelSet::FromFiles(files, manifest);
}

}  // namespace ltx::random_model
