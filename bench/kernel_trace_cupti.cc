#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "bench/kernel_trace.h"
#include "kernels/status_macros.h"

namespace ltx::bench {
namespace {

/// CUPTI hands out records in buffers of this size.
constexpr size_t kBufferBytes = size_t{8} << 20;

/// The library's functions, found at run time: it is a tool that a machine need not have.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
};

absl::StatusOr<Cupti> LoadCupti() {
  void* library = nullptr;
  for (const char* name : {"libcupti.so.13", "libcupti.so"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW);
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CUPTI (", dlerror(), "); it is in extras/CUPTI of the toolkit"));
  }
  Cupti cupti;
  const auto find = [library](const char* name, auto* function) -> absl::Status {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("CUPTI has no ", name));
  };
  LTX_RETURN_IF_ERROR(find("cuptiActivityRegisterCallbacks", &cupti.register_callbacks));
  LTX_RETURN_IF_ERROR(find("cuptiActivityEnable", &cupti.enable));
  LTX_RETURN_IF_ERROR(find("cuptiActivityDisable", &cupti.disable));
  LTX_RETURN_IF_ERROR(find("cuptiActivityFlushAll", &cupti.flush));
  LTX_RETURN_IF_ERROR(find("cuptiActivityGetNextRecord", &cupti.next_record));
  return cupti;
}

std::string Demangled(const char* name) {
  int status = 0;
  char* const readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? readable : name;
  std::free(readable);
  return result;
}

/// Sums by kernel. The callbacks of CUPTI carry no argument, so the trace that runs is known to the
/// process.
class CuptiTrace final : public KernelTrace {
 public:
  explicit CuptiTrace(const Cupti& cupti) : cupti_(cupti) { running_ = this; }
  ~CuptiTrace() override {
    cupti_.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    running_ = nullptr;
  }

  absl::Status Start() {
    CUptiResult result = cupti_.register_callbacks(GiveBuffer, TakeBuffer);
    if (result == CUPTI_SUCCESS) result = cupti_.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (result == CUPTI_SUCCESS) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("CUPTI refuses: error ", result));
  }

  absl::StatusOr<std::vector<Entry>> Finish() override {
    cupti_.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    absl::MutexLock lock(&mutex_);
    std::vector<Entry> entries;
    for (const auto& [name, entry] : sums_) entries.push_back(entry);
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.milliseconds > b.milliseconds; });
    return entries;
  }

 private:
  static void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* size, size_t* max_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *max_records = 0;
  }
  static void CUPTIAPI TakeBuffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer,
                                  size_t /*size*/, size_t valid) {
    if (running_ != nullptr) running_->Read(buffer, valid);
    std::free(buffer);
  }
  void Read(uint8_t* buffer, size_t valid) {
    absl::MutexLock lock(&mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
      const auto* const kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      Entry& entry = sums_[kernel->name];
      if (entry.count++ == 0) entry.name = Demangled(kernel->name);
      entry.milliseconds += static_cast<double>(kernel->end - kernel->start) * 1e-6;
    }
  }

  inline static CuptiTrace* running_ = nullptr;
  const Cupti cupti_;
  absl::Mutex mutex_;
  std::map<std::string, Entry> sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTrace>> StartKernelTrace() {
  LTX_ASSIGN_OR_RETURN(const Cupti cupti, LoadCupti());
  auto trace = std::make_unique<CuptiTrace>(cupti);
  LTX_RETURN_IF_ERROR(trace->Start());
  return trace;
}

}  // namespace ltx::bench
