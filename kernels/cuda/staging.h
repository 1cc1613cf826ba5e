#ifndef LTX_KERNELS_CUDA_STAGING_H_
#define LTX_KERNELS_CUDA_STAGING_H_

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/copy_team.h"

namespace ltx::cuda {

/// Copies between ordinary host memory and the device through pinned memory, by several threads:
/// one core alone fills pinned memory at a fraction of the rate of the bus. Each thread has two
/// buffers; while one travels, it fills or empties the other. Small uploads share a buffer and do
/// not wait.
///
/// One thread at a time; a stream counts as one with all that is issued to it elsewhere.
class Staging {
 public:
  /// Pins the buffers. RESOURCE_EXHAUSTED if the host has no such memory to pin.
  static absl::StatusOr<std::unique_ptr<Staging>> Create();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Enqueues the copy; `from` may be released when this returns.
  absl::Status Upload(absl::Span<const uint8_t> from, void* to, cudaStream_t stream);
  /// Returns when `to` is filled, and so everything before it in the stream is done.
  absl::Status Download(const void* from, absl::Span<uint8_t> to, cudaStream_t stream);

  /// An upload that other threads do meanwhile.
  struct Task {
    int64_t bytes = 0;
    void* to = nullptr;
    /// Fills a piece of pinned memory with the bytes from `begin` on.
    std::function<absl::Status(int64_t begin, absl::Span<uint8_t> piece)> read;
    /// Asked before each piece; false leaves it out.
    std::function<bool()> wanted;
    /// Told the first failure of a piece, and every other one.
    std::function<void(const absl::Status&)> failed;
  };
  /// Has the copies issued to `stream` at some time before Settle returns, and the task destroyed
  /// then.
  absl::Status Post(Task task, cudaStream_t stream);
  /// Waits until the copies of all posted tasks have been issued: what goes into the stream from
  /// now on comes after them.
  void Settle() {
    if (posted_.load(std::memory_order_relaxed)) SettlePosted();
  }

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    int64_t used = 0;
    /// Recorded behind the last copy that reads or writes the buffer.
    cudaEvent_t done = nullptr;
  };
  /// The two buffers of one thread.
  struct Lane {
    std::array<Buffer, 2> buffers;
    int current = 0;
  };

  Staging();
  /// Makes all copies one sequence, whichever streams they are issued to.
  absl::Status Follow(cudaStream_t stream);
  /// Calls copy(lane, begin, end) for pieces of [0, bytes), each a buffer's size at most, by as
  /// many threads as that is worth. The first error.
  absl::Status ForPieces(int64_t bytes,
                         absl::FunctionRef<absl::Status(Lane&, int64_t, int64_t)> copy);
  /// The lane's buffer with room for `bytes`: the current one, or the other once its last copy is
  /// done.
  static absl::StatusOr<Buffer*> Room(Lane& lane, int64_t bytes, cudaStream_t stream);
  /// Fills pinned memory by fill(piece of it) and enqueues the copy of it to `to`.
  static absl::Status UploadPiece(Lane& lane, int64_t bytes, void* to, cudaStream_t stream,
                                  absl::FunctionRef<absl::Status(absl::Span<uint8_t>)> fill);
  void SettlePosted();

  /// For each member of the team, a lane.
  std::vector<Lane> lanes_;
  /// Of the last copy, and what makes another stream wait for it.
  cudaStream_t stream_ = nullptr;
  cudaEvent_t switched_ = nullptr;
  /// Whether tasks have been posted since the last Settle.
  std::atomic<bool> posted_{false};
  /// Last: its threads are gone before what they work with.
  CopyTeam team_;
};

}  // namespace ltx::cuda

#endif  // LTX_KERNELS_CUDA_STAGING_H_
