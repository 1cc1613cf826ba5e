#include "kernels/cpu/cpu_device.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "kernels/allocation.h"
#include "kernels/cpu/host_heap.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/op_scratch.h"
#include "kernels/status_macros.h"

namespace ltx::cpu {
namespace {

/// A block of host memory that its ledger knows of for as long as it lives.
class HostStorage final : public Storage {
 public:
  HostStorage(void* data, int64_t bytes, MemoryOwner owner, HostMemory* memory,
              MemoryLedger* ledger)
      : Storage(data, bytes, /*host_accessible=*/true),
        owner_(owner),
        memory_(memory),
        ledger_(ledger) {}

  ~HostStorage() override {
    if (bytes() == 0) return;
    memory_->Free(data(), bytes(), owner_);
    ledger_->Remove(owner_, bytes());
  }

 private:
  const MemoryOwner owner_;
  HostMemory* const memory_;
  MemoryLedger* const ledger_;
};

int CoresOfThisProcess() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuDevice>> CpuDevice::Create(const CpuDeviceOptions& options) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return absl::FailedPreconditionError(
        "the processor lacks AVX2 or FMA, which the CPU device is compiled for");
  }
  if (options.threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, ", legal is 0 (all cores) or more"));
  }
  const int threads = options.threads == 0 ? CoresOfThisProcess() : options.threads;
  HostMemory* memory = options.memory == nullptr ? &ProcessHeap() : options.memory;
  auto device = absl::WrapUnique(new CpuDevice(threads, memory));
  LTX_ASSIGN_OR_RETURN(device->onednn_, OneDnn::Create(threads));
  device->op_scratch_ = std::make_unique<CpuOpScratch>(threads, device->onednn_->native_bf16());
  return device;
}

CpuDevice::CpuDevice(int threads, HostMemory* memory) : threads_(threads), memory_(memory) {}
CpuDevice::~CpuDevice() = default;

std::string CpuDevice::name() const { return "cpu"; }

std::string CpuDevice::description() const {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "x86-64";
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && line.compare(0, 10, "model name") == 0) {
      model = line.substr(colon + 2);
      break;
    }
  }
  return absl::StrCat(model, ", ", threads_, threads_ == 1 ? " thread" : " threads");
}

DeviceProperties CpuDevice::properties() const {
  DeviceProperties properties;
  properties.threads = threads_;
  return properties;
}

MemoryLedger& CpuDevice::ledger() { return ledger_; }

int64_t CpuDevice::SystemAvailableBytes() const {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kibibytes;
  std::string unit;
  while (file >> key >> kibibytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

const OpScratch& CpuDevice::op_scratch() const { return *op_scratch_; }

absl::StatusOr<Tensor> CpuDevice::Allocate(const Shape& shape, DType dtype, MemoryOwner owner) {
  LTX_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(shape, dtype));
  void* block = nullptr;
  if (bytes > 0) {
    block = memory_->Allocate(bytes, owner);
    if (block == nullptr) return OutOfMemoryError("cpu", bytes, owner, ledger_);
    ledger_.Add(owner, bytes);
  }
  return Tensor(std::make_shared<HostStorage>(block, bytes, owner, memory_, &ledger_), 0, shape,
                dtype);
}

absl::Status CpuDevice::Upload(absl::Span<const uint8_t> bytes, const Tensor& tensor) {
  LTX_RETURN_IF_ERROR(CheckTransfer("upload", tensor, bytes.size()));
  if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status CpuDevice::Download(const Tensor& tensor, absl::Span<uint8_t> bytes) {
  LTX_RETURN_IF_ERROR(CheckTransfer("download", tensor, bytes.size()));
  if (!bytes.empty()) std::memcpy(bytes.data(), tensor.raw(), bytes.size());
  return absl::OkStatus();
}

absl::Status CpuDevice::Copy(const Tensor& from, Tensor* to) {
  LTX_RETURN_IF_ERROR(CheckCopy(from, *to));
  if (from.num_bytes() > 0) {
    std::memcpy(to->raw(), from.raw(), static_cast<size_t>(from.num_bytes()));
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::Synchronize() { return absl::OkStatus(); }

absl::StatusOr<Tensor> CpuDevice::Workspace(int64_t bytes) {
  return Allocate({bytes}, DType::kU8, MemoryOwner::kWorkspace);
}

}  // namespace ltx::cpu
