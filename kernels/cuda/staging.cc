#include "kernels/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/memory/memory.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/status_macros.h"

namespace ltx::cuda {
namespace {

/// On an H200 behind PCIe 5 (55.2 GB/s) uploads of one long row of bytes by 8 threads in pieces of
/// 2 MiB reach 52 GB/s, by 4 threads 36. But a single tensor has an end, where threads run out of
/// pieces: twice as many threads as the bus needs make up for it.
constexpr int kMaxLanes = 16;
constexpr int64_t kBufferBytes = int64_t{2} << 20;
/// Pieces of less cost more to start (some 5 us) than they take on the bus.
constexpr int64_t kLeastPiece = int64_t{256} << 10;
/// Device addresses of uploads need no more than a vector load's alignment of their source.
constexpr int64_t kAlignment = 16;
/// Pieces of a file begin where its pages do, as far as its tensors let them.
constexpr int64_t kFilePage = 4096;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Staging::Staging()
    : lanes_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxLanes)),
      team_(static_cast<int>(lanes_.size())) {}

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create() {
  auto staging = absl::WrapUnique(new Staging());
  for (Lane& lane : staging->lanes_) {
    for (Buffer& buffer : lane.buffers) {
      void* pinned = nullptr;
      LTX_RETURN_IF_CUDA_ERROR(cudaMallocHost(&pinned, static_cast<size_t>(kBufferBytes)));
      buffer.data = static_cast<uint8_t*>(pinned);
      LTX_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&buffer.done, cudaEventDisableTiming));
    }
  }
  LTX_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&staging->switched_, cudaEventDisableTiming));
  return staging;
}

Staging::~Staging() {
  Settle();
  for (const Lane& lane : lanes_) {
    for (const Buffer& buffer : lane.buffers) {
      if (buffer.done != nullptr) {
        cudaEventSynchronize(buffer.done);
        cudaEventDestroy(buffer.done);
      }
      if (buffer.data != nullptr) cudaFreeHost(buffer.data);
    }
  }
  if (switched_ != nullptr) cudaEventDestroy(switched_);
}

absl::Status Staging::Follow(cudaStream_t stream) {
  if (stream_ != nullptr && stream_ != stream) {
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(switched_, stream_));
    LTX_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream, switched_));
  }
  stream_ = stream;
  return absl::OkStatus();
}

absl::Status Staging::ForPieces(int64_t bytes,
                                absl::FunctionRef<absl::Status(Lane&, int64_t, int64_t)> copy) {
  if (bytes == 0) return absl::OkStatus();
  const int64_t share = (bytes + team_.members() - 1) / team_.members();
  const int64_t piece_bytes = std::clamp(RoundUp(share, kAlignment), kLeastPiece, kBufferBytes);
  const int64_t pieces = (bytes + piece_bytes - 1) / piece_bytes;
  if (pieces == 1) return copy(lanes_.front(), 0, bytes);
  // Every thread has a current device of its own.
  int device = 0;
  LTX_RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  absl::Mutex mutex;
  absl::Status first_error;
  team_.Run(pieces, [&](int member, int64_t piece) {
    const int64_t begin = piece * piece_bytes;
    absl::Status status = CudaStatus(cudaSetDevice(device), "cudaSetDevice(device)");
    if (status.ok()) status = copy(lanes_[member], begin, std::min(begin + piece_bytes, bytes));
    if (status.ok()) return;
    absl::MutexLock lock(&mutex);
    first_error.Update(status);
  });
  return first_error;
}

absl::StatusOr<Staging::Buffer*> Staging::Room(Lane& lane, int64_t bytes, cudaStream_t stream) {
  if (kBufferBytes - lane.buffers[lane.current].used < bytes) {
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(lane.buffers[lane.current].done, stream));
    lane.current ^= 1;
    LTX_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(lane.buffers[lane.current].done));
    lane.buffers[lane.current].used = 0;
  }
  return &lane.buffers[lane.current];
}

absl::Status Staging::UploadPiece(Lane& lane, int64_t bytes, void* to, cudaStream_t stream,
                                  absl::FunctionRef<absl::Status(absl::Span<uint8_t>)> fill) {
  LTX_ASSIGN_OR_RETURN(Buffer* const buffer, Room(lane, bytes, stream));
  uint8_t* const pinned = buffer->data + buffer->used;
  const auto size = static_cast<size_t>(bytes);
  LTX_RETURN_IF_ERROR(fill(absl::MakeSpan(pinned, size)));
  LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to, pinned, size, cudaMemcpyHostToDevice, stream));
  buffer->used += RoundUp(bytes, kAlignment);
  return absl::OkStatus();
}

absl::Status Staging::Upload(absl::Span<const uint8_t> from, void* to, cudaStream_t stream) {
  LTX_RETURN_IF_ERROR(Follow(stream));
  const auto copy = [&](Lane& lane, int64_t begin, int64_t end) {
    return UploadPiece(lane, end - begin, static_cast<uint8_t*>(to) + begin, stream,
                       [&](absl::Span<uint8_t> pinned) {
                         std::memcpy(pinned.data(), from.data() + begin, pinned.size());
                         return absl::OkStatus();
                       });
  };
  return ForPieces(static_cast<int64_t>(from.size()), copy);
}

absl::Status Staging::Post(Task task, cudaStream_t stream) {
  if (task.bytes == 0) return absl::OkStatus();
  LTX_RETURN_IF_ERROR(Follow(stream));
  int device = 0;
  LTX_RETURN_IF_CUDA_ERROR(cudaGetDevice(&device));
  // Others follow, so there is no end to be shared out evenly: the fewer pieces the better.
  const int64_t least_pieces = (task.bytes + kBufferBytes - 1) / kBufferBytes;
  const int64_t piece_bytes = RoundUp((task.bytes + least_pieces - 1) / least_pieces, kFilePage);
  const int64_t pieces = (task.bytes + piece_bytes - 1) / piece_bytes;
  posted_.store(true, std::memory_order_relaxed);
  team_.Post(pieces, [this, task = std::move(task), piece_bytes, stream, device](int member,
                                                                                 int64_t piece) {
    if (!task.wanted()) return;
    const int64_t begin = piece * piece_bytes;
    absl::Status status = CudaStatus(cudaSetDevice(device), "cudaSetDevice(device)");
    if (status.ok()) {
      status = UploadPiece(lanes_[member], std::min(piece_bytes, task.bytes - begin),
                           static_cast<uint8_t*>(task.to) + begin, stream,
                           [&](absl::Span<uint8_t> pinned) { return task.read(begin, pinned); });
    }
    if (!status.ok()) task.failed(status);
  });
  return absl::OkStatus();
}

void Staging::SettlePosted() {
  team_.Finish();
  posted_.store(false, std::memory_order_relaxed);
}

absl::Status Staging::Download(const void* from, absl::Span<uint8_t> to, cudaStream_t stream) {
  LTX_RETURN_IF_ERROR(Follow(stream));
  // While one thread empties its buffer, those of others are being filled.
  const auto copy = [&](Lane& lane, int64_t begin, int64_t end) -> absl::Status {
    LTX_ASSIGN_OR_RETURN(Buffer* const buffer, Room(lane, end - begin, stream));
    uint8_t* const pinned = buffer->data + buffer->used;
    const auto bytes = static_cast<size_t>(end - begin);
    LTX_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(pinned, static_cast<const uint8_t*>(from) + begin,
                                             bytes, cudaMemcpyDeviceToHost, stream));
    LTX_RETURN_IF_CUDA_ERROR(cudaEventRecord(buffer->done, stream));
    LTX_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(buffer->done));
    std::memcpy(to.data() + begin, pinned, bytes);
    return absl::OkStatus();
  };
  LTX_RETURN_IF_ERROR(ForPieces(static_cast<int64_t>(to.size()), copy));
  LTX_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream));
  return absl::OkStatus();
}

}  // namespace ltx::cuda
