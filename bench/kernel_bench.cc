// Times the costly operations of the CPU device on shapes of the models, and prints times and
// rates.
//
//   bazel run -c opt //bench:kernel_bench -- --filter=conv1d --threads=2

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/openmp_environment.h"
#include "kernels/host_copy.h"
#include "kernels/status_macros.h"

ABSL_FLAG(int, threads, 0, "threads of the device; 0: every core");
ABSL_FLAG(std::string, filter, "", "run only the cases whose name contains this");
ABSL_FLAG(double, seconds, 0.3, "time spent on one case");

namespace ltx {
namespace {

using Clock = std::chrono::steady_clock;

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Bench {
 public:
  explicit Bench(Device* device) : device_(*device) {}

  absl::StatusOr<Tensor> Random(const Shape& shape, DType dtype) {
    std::normal_distribution<float> normal;
    std::vector<float> values(shape.num_elements());
    for (float& value : values) value = normal(generator_);
    return TensorFromFloats(device_, values, shape, dtype);
  }

  /// Prints the best wall time of `op`, and what it makes of the processor time of all threads:
  /// `flops` per call and second of one core, which other load on the machine disturbs little.
  absl::Status Time(const std::string& name, double flops,
                    const std::function<absl::StatusOr<Tensor>()>& op) {
    double best_wall = 1e30;
    double best_cpu = 1e30;
    const Clock::time_point start = Clock::now();
    do {
      const Clock::time_point wall = Clock::now();
      const double cpu = ProcessorSeconds();
      LTX_ASSIGN_OR_RETURN(const Tensor result, op());
      best_cpu = std::min(best_cpu, ProcessorSeconds() - cpu);
      best_wall = std::min(best_wall, std::chrono::duration<double>(Clock::now() - wall).count());
    } while (std::chrono::duration<double>(Clock::now() - start).count() <
             absl::GetFlag(FLAGS_seconds));
    absl::PrintF("%-58s %9.3f ms %8.1f GFLOP/s a core\n", name, best_wall * 1e3,
                 flops / best_cpu * 1e-9);
    return absl::OkStatus();
  }

  absl::Status Linear(int64_t rows, int64_t in, int64_t out, DType dtype, Activation activation) {
    const std::string name =
        absl::StrCat("linear ", rows, "x", in, "->", out, " ", DTypeName(dtype), " activation ",
                     static_cast<int>(activation));
    if (Skips(name)) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(const Tensor x, Random({rows, in}, dtype));
    LTX_ASSIGN_OR_RETURN(const Tensor w, Random({out, in}, dtype));
    LTX_ASSIGN_OR_RETURN(const Tensor b, Random({out}, dtype));
    LTX_ASSIGN_OR_RETURN(const LinearWeight weight,
                         device_.PrepareLinear(w, b, MemoryOwner::kWeightsDit));
    LinearOptions options;
    options.activation = activation;
    return Time(name, 2.0 * rows * in * out, [&] { return device_.Linear(x, weight, options); });
  }

  absl::Status Conv(const std::vector<int64_t>& extents, int64_t in, int64_t out, int64_t kernel,
                    int64_t dilation, int64_t stride, DType dtype) {
    const auto axes = static_cast<int>(extents.size());
    const std::string name =
        absl::StrCat("conv", axes, "d ", absl::StrJoin(extents, "x"), " ", in, "->", out, " k",
                     kernel, " d", dilation, " s", stride, " ", DTypeName(dtype));
    if (Skips(name)) return absl::OkStatus();
    ConvOptions options;
    std::vector<int64_t> x_dims = {1};
    std::vector<int64_t> w_dims = {out, in};
    for (int axis = 0; axis < axes; ++axis) {
      options.axes[axis].stride = stride;
      options.axes[axis].dilation = dilation;
      options.axes[axis].pad_before = options.axes[axis].pad_after = dilation * (kernel - 1) / 2;
      x_dims.push_back(extents[axis]);
      w_dims.push_back(kernel);
    }
    x_dims.push_back(in);
    LTX_ASSIGN_OR_RETURN(const Tensor x, Random(Shape(x_dims), dtype));
    LTX_ASSIGN_OR_RETURN(const Tensor w, Random(Shape(w_dims), dtype));
    LTX_ASSIGN_OR_RETURN(const Tensor b, Random({out}, dtype));
    LTX_ASSIGN_OR_RETURN(const ConvWeight weight,
                         device_.PrepareConv(w, b, MemoryOwner::kWeightsVideoVae));
    LTX_ASSIGN_OR_RETURN(const Tensor y, device_.Conv(x, weight, options));
    const double flops = 2.0 * y.num_elements() * in * weight.kernel.num_elements();
    return Time(name, flops, [&] { return device_.Conv(x, weight, options); });
  }

  absl::Status ConvTranspose(int64_t length, int64_t in, int64_t out, int64_t kernel,
                             int64_t stride, DType dtype) {
    const std::string name = absl::StrCat("transposed conv1d ", length, " ", in, "->", out, " k",
                                          kernel, " s", stride, " ", DTypeName(dtype));
    if (Skips(name)) return absl::OkStatus();
    LTX_ASSIGN_OR_RETURN(const Tensor x, Random({1, length, in}, dtype));
    LTX_ASSIGN_OR_RETURN(const Tensor w, Random({in, out, kernel}, dtype));
    LTX_ASSIGN_OR_RETURN(const ConvWeight weight, device_.PrepareConvTranspose1d(
                                                      w, Tensor(), MemoryOwner::kWeightsAudioVae));
    return Time(name, 2.0 * length * in * out * kernel,
                [&] { return device_.ConvTranspose1d(x, weight, stride, (kernel - stride) / 2); });
  }

 private:
  static bool Skips(const std::string& name) {
    return !absl::StrContains(name, absl::GetFlag(FLAGS_filter));
  }

  Device& device_;
  std::mt19937 generator_{1};
};

absl::Status RunAll(Bench& bench) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t rows : {1, 24, 96, 1000}) {
      for (const auto& [in, out] :
           std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {128, 512}, {2048, 2048}}) {
        LTX_RETURN_IF_ERROR(bench.Linear(rows, in, out, dtype, Activation::kNone));
      }
      LTX_RETURN_IF_ERROR(bench.Linear(rows, 256, 1024, dtype, Activation::kGeluTanh));
    }
    LTX_RETURN_IF_ERROR(bench.Conv({5, 24, 64}, 12, 12, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({5, 24, 64}, 16, 24, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({9, 24, 32}, 48, 48, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({5, 12, 16}, 128, 128, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({9, 24, 32}, 512, 512, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({5, 16, 16}, 1024, 1024, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({9, 24, 32}, 3, 64, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({128, 128}, 128, 128, 3, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({128, 128}, 128, 256, 3, 1, 2, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({128, 128}, 512, 512, 1, 1, 1, dtype));
    for (const int64_t channels : {16, 24, 48}) {
      for (const int64_t kernel : {3, 7, 11}) {
        for (const int64_t dilation : {1, 3, 5}) {
          LTX_RETURN_IF_ERROR(bench.Conv({19200}, channels, channels, kernel, dilation, 1, dtype));
        }
      }
    }
    LTX_RETURN_IF_ERROR(bench.Conv({48000}, 16, 1, 7, 1, 1, dtype));
    LTX_RETURN_IF_ERROR(bench.Conv({32000}, 1, 514, 512, 1, 80, dtype));
    LTX_RETURN_IF_ERROR(bench.ConvTranspose(3000, 96, 48, 11, 5, dtype));
    LTX_RETURN_IF_ERROR(bench.ConvTranspose(12000, 48, 24, 4, 2, dtype));
    LTX_RETURN_IF_ERROR(bench.ConvTranspose(24000, 24, 12, 4, 2, dtype));
    LTX_RETURN_IF_ERROR(bench.ConvTranspose(500, 768, 384, 11, 5, dtype));
  }
  return absl::OkStatus();
}

absl::Status Main() {
  cpu::CpuDeviceOptions options;
  options.threads = absl::GetFlag(FLAGS_threads);
  LTX_ASSIGN_OR_RETURN(const std::unique_ptr<cpu::CpuDevice> device,
                       cpu::CpuDevice::Create(options));
  absl::PrintF("%s\n", device->description());
  Bench bench(device.get());
  return RunAll(bench);
}

}  // namespace
}  // namespace ltx

int main(int argc, char** argv) {
  if (const absl::Status status = ltx::cpu::UsePassiveOpenMpThreads(argv); !status.ok()) {
    absl::FPrintF(stderr, "kernel_bench: warning: %s\n", status.message());
  }
  absl::ParseCommandLine(argc, argv);
  if (const absl::Status status = ltx::Main(); !status.ok()) {
    absl::FPrintF(stderr, "%s\n", status.ToString());
    return 1;
  }
  return 0;
}
