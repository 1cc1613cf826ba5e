#include "tools/random_model/checkpoint_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "engine/media/atomic_file.h"
#include "kernels/dtype.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"
#include "tools/random_model/random_values.h"

namespace ltx::random_model {
namespace {

namespace fs = std::filesystem;

/// A piece is made and written while it is in a core's own cache.
constexpr int64_t kPieceValues = int64_t{1} << 19;
static_assert(kPieceValues % kRandomBlock == 0);
/// The data begins at a multiple of this, as the format's own writers have it.
constexpr size_t kHeaderAlignment = 8;

struct PlacedTensor {
  std::string name;
  Shape shape;
  /// From the start of the data.
  int64_t begin = 0;
};

/// A file before its values: length and header in front, then tensors, then texts, whose odd
/// lengths would put tensors at odd addresses.
struct PlacedFile {
  /// With the eight bytes of its length.
  std::string header;
  std::vector<PlacedTensor> tensors;
  std::string texts;
  /// From the start of the data.
  int64_t texts_begin = 0;
  int64_t data_bytes = 0;
};

PlacedFile Place(const FileLayout& layout, const WriteOptions& options) {
  PlacedFile file;
  nlohmann::json header;
  header["__metadata__"] = layout.metadata;
  header["__metadata__"]["random_seed"] = absl::StrCat(options.seed);
  const auto add = [&](const std::string& name, absl::string_view dtype,
                       absl::Span<const int64_t> shape, int64_t bytes) {
    header[name] = {{"dtype", std::string(dtype)},
                    {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
                    {"data_offsets", {file.data_bytes, file.data_bytes + bytes}}};
    file.data_bytes += bytes;
  };
  for (const auto& [name, shape] : layout.tensors) {
    file.tensors.push_back({name, shape, file.data_bytes});
    add(name, DTypeName(DType::kBF16), shape.dims(), shape.num_elements() * SizeOf(DType::kBF16));
  }
  file.texts_begin = file.data_bytes;
  for (const auto& [name, text] : layout.texts) {
    const auto bytes = static_cast<int64_t>(text.size());
    add(name, DTypeName(DType::kU8), {bytes}, bytes);
    file.texts += text;
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  const auto length = static_cast<uint64_t>(text.size());
  file.header.assign(reinterpret_cast<const char*>(&length), sizeof(length));
  file.header += text;
  return file;
}

absl::Status WriteAt(int descriptor, absl::Span<const uint8_t> bytes, int64_t offset,
                     const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const std::string text = absl::StrCat("cannot write ", path, ": ", std::strerror(errno));
      return errno == ENOSPC ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

/// Makes and writes all pieces of a file's tensors on several threads.
class PieceWriter {
 public:
  PieceWriter(const PlacedFile& file, int descriptor, const std::string& path, uint64_t seed)
      : file_(file), descriptor_(descriptor), path_(path), seed_(seed) {
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      const int64_t values = file.tensors[i].shape.num_elements();
      for (int64_t at = 0; at < values; at += kPieceValues) pieces_.push_back({i, at});
    }
  }

  absl::Status Run(int threads) {
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([this] { Work(); });
    for (std::thread& worker : workers) worker.join();
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  struct Piece {
    size_t tensor;
    int64_t begin;
  };

  void Work() {
    std::vector<BFloat16> values(kPieceValues);
    for (size_t i = next_++; i < pieces_.size(); i = next_++) {
      const absl::Status written = Write(pieces_[i], absl::MakeSpan(values));
      if (written.ok()) continue;
      next_ = pieces_.size();
      absl::MutexLock lock(&mutex_);
      status_.Update(written);
    }
  }

  absl::Status Write(const Piece& piece, absl::Span<BFloat16> values) const {
    const PlacedTensor& tensor = file_.tensors[piece.tensor];
    const auto count = static_cast<size_t>(
        std::min<int64_t>(kPieceValues, tensor.shape.num_elements() - piece.begin));
    // Every tensor has a sequence of its own.
    const uint64_t seed = (seed_ << 32) + piece.tensor;
    FillRandom(RangeOf(tensor.name, tensor.shape), seed, piece.begin, values.subspan(0, count));
    const auto offset = static_cast<int64_t>(file_.header.size()) + tensor.begin +
                        piece.begin * SizeOf(DType::kBF16);
    return WriteAt(descriptor_,
                   absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(values.data()),
                                       count * sizeof(BFloat16)),
                   offset, path_);
  }

  const PlacedFile& file_;
  const int descriptor_;
  const std::string& path_;
  const uint64_t seed_;
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_{0};
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

/// What killed runs left: files that atomic_file.h names after this one.
void RemoveLeftovers(const std::string& path) {
  const fs::path final_path(path);
  const std::string beginning = absl::StrCat(final_path.filename().string(), ".part-");
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator it(final_path.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    if (absl::StartsWith(it->path().filename().string(), beginning)) {
      leftovers.push_back(it->path());
    }
  }
  for (const fs::path& leftover : leftovers) fs::remove(leftover, error);
}

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

int64_t FileBytes(const FileLayout& layout, const WriteOptions& options) {
  const PlacedFile file = Place(layout, options);
  return static_cast<int64_t>(file.header.size()) + file.data_bytes;
}

bool IsWritten(const FileLayout& layout, const std::string& path, const WriteOptions& options) {
  const PlacedFile file = Place(layout, options);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes != file.header.size() + static_cast<std::uintmax_t>(file.data_bytes)) {
    return false;
  }
  std::ifstream stream(path, std::ios::binary);
  std::string header(file.header.size(), '\0');
  stream.read(header.data(), static_cast<std::streamsize>(header.size()));
  return stream.good() && header == file.header;
}

absl::Status WriteCheckpoint(const FileLayout& layout, const std::string& path,
                             const WriteOptions& options) {
  std::error_code error;
  if (fs::exists(path, error)) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": there is another file of that name"));
  }
  RemoveLeftovers(path);
  const PlacedFile placed = Place(layout, options);
  LTX_ASSIGN_OR_RETURN(media::AtomicFile file, media::AtomicFile::Create(path));
  LTX_RETURN_IF_ERROR(file.Write(BytesOf(placed.header)));
  LTX_RETURN_IF_ERROR(WriteAt(file.descriptor(), BytesOf(placed.texts),
                              static_cast<int64_t>(placed.header.size()) + placed.texts_begin,
                              path));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PieceWriter writer(placed, file.descriptor(), path, options.seed);
  LTX_RETURN_IF_ERROR(writer.Run(options.threads > 0 ? options.threads : cores));
  return file.Commit(media::Durability::kWhole);
}

}  // namespace ltx::random_model
