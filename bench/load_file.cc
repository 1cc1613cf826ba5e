#include "bench/load_file.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "bench/bus_rate.h"
#include "bench/sample.h"
#include "engine/checkpoint/json_text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/transformer_config.h"
#include "engine/checkpoint/weight_loader.h"
#include "engine/checkpoint/weight_set.h"
#include "engine/dit/transformer.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

using nlohmann::json;

/// Reads the whole file once, so that the kernel keeps it.
void WarmPageCache(const std::string& path, int64_t bytes) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  std::atomic<int64_t> next{0};
  const auto read = [&] {
    std::ifstream stream(path, std::ios::binary);
    std::vector<char> piece(kPiece);
    for (int64_t at = next++ * kPiece; at < bytes; at = next++ * kPiece) {
      stream.clear();
      stream.seekg(at);
      stream.read(piece.data(), kPiece);
    }
  };
  std::vector<std::thread> readers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    readers.emplace_back(read);
  }
  for (std::thread& reader : readers) reader.join();
}

absl::StatusOr<std::unique_ptr<dit::Transformer>> Load(const std::string& path, Device& device,
                                                       DType dtype) {
  LTX_ASSIGN_OR_RETURN(const auto file, checkpoint::SafetensorsFile::Open(path));
  const auto text = file->metadata().find("config");
  LTX_ASSIGN_OR_RETURN(const json config, checkpoint::ParseJsonObject(
                                              text == file->metadata().end() ? "" : text->second,
                                              path + ": metadata config"));
  LTX_ASSIGN_OR_RETURN(const checkpoint::TransformerConfig parsed,
                       checkpoint::ParseTransformerConfig(config));
  checkpoint::WeightSet weights;
  LTX_RETURN_IF_ERROR(weights.Add(file, "model.diffusion_model."));
  LTX_ASSIGN_OR_RETURN(auto transformer,
                       dit::Transformer::Load(parsed, dit::ModelClass::kAudioVideo,
                                              checkpoint::WeightLoader(&device, &weights, dtype,
                                                                       MemoryOwner::kWeightsDit)));
  LTX_RETURN_IF_ERROR(device.Synchronize());
  return transformer;
}

int64_t WeightBytes(Device& device) {
  return device.ledger().Read().by_owner[static_cast<int>(MemoryOwner::kWeightsDit)].live_bytes;
}

}  // namespace

absl::StatusOr<json> MeasureLoad(const std::string& path, Device& device, DType dtype, int repeat) {
  json result = {{"file", path}};
  {
    LTX_ASSIGN_OR_RETURN(const auto file, checkpoint::SafetensorsFile::Open(path));
    result["file_bytes"] = file->file_bytes();
    WarmPageCache(path, file->file_bytes());
  }
  std::vector<double> seconds;
  int64_t loaded_bytes = 0;
  for (int i = 0; i < repeat; ++i) {
    const int64_t before = WeightBytes(device);
    const auto start = std::chrono::steady_clock::now();
    LTX_ASSIGN_OR_RETURN(const auto transformer, Load(path, device, dtype));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(took.count());
    loaded_bytes = WeightBytes(device) - before;
  }
  const double first_rate = static_cast<double>(loaded_bytes) / seconds.front();
  const double best_rate = static_cast<double>(loaded_bytes) / Minimum(seconds);
  result["loaded_bytes"] = loaded_bytes;
  result["seconds"] = Summarize(seconds);
  result["gigabytes_per_second"] = {{"first", first_rate * 1e-9}, {"best", best_rate * 1e-9}};
  const absl::StatusOr<double> bus = MeasureBusRate(device.name());
  if (absl::IsUnimplemented(bus.status())) return result;
  LTX_RETURN_IF_ERROR(bus.status());
  result["bus_gigabytes_per_second"] = *bus * 1e-9;
  result["of_bus"] = {{"first", first_rate / *bus}, {"best", best_rate / *bus}};
  return result;
}

}  // namespace ltx::bench
