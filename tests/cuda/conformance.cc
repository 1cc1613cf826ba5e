#include "tests/cuda/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::cuda {
namespace {

/// The worst that was seen of each operation, printed at the end: GPU time is scarce, so one run
/// has to tell how much room each bound leaves.
struct Worst {
  double rel_l2 = 0.0;
  /// Largest error in units of its bound; of exact operations, the count of unequal elements.
  double severity = 0.0;
  int comparisons = 0;
  std::string where;
};

class WorstReport final : public ::testing::Environment {
 public:
  void TearDown() override {
    for (const auto& [operation, worst] : seen_) {
      std::printf("%-24s %5d comparisons, worst rel_l2 %.3g, %.3g of the bound  %s\n",
                  operation.c_str(), worst.comparisons, worst.rel_l2, worst.severity,
                  worst.where.c_str());
    }
  }
  void Note(const std::string& what, double rel_l2, double severity) {
    Worst& worst = seen_[what.substr(0, what.find(' '))];
    ++worst.comparisons;
    worst.rel_l2 = std::max(worst.rel_l2, rel_l2);
    if (severity > worst.severity || worst.comparisons == 1) {
      worst.severity = severity;
      worst.where = what;
    }
  }

 private:
  std::map<std::string, Worst> seen_;
};

// GoogleTest owns it.
WorstReport* const report =
    static_cast<WorstReport*>(::testing::AddGlobalTestEnvironment(new WorstReport));

bool IsComparedAsFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

}  // namespace

Device* ConformanceTest::cpu_ = nullptr;
CudaDevice* ConformanceTest::gpu_ = nullptr;

Bound Close(DType dtype) { return dtype == DType::kBF16 ? Bound{0x1p-7, 1e-3} : Bound{2e-6, 1e-6}; }

Bound CloseSum(DType dtype) {
  return dtype == DType::kBF16 ? Bound{0x1p-7, 4e-3} : Bound{1e-5, 1e-5};
}

std::string Describe(const Shape& shape, DType dtype) {
  return absl::StrCat(shape.ToString(), " ", DTypeName(dtype));
}

void ConformanceTest::SetUpTestSuite() {
  if (cpu_ != nullptr) return;
  auto cpu = cpu::CpuDevice::Create({});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  cpu_ = cpu->release();
  auto gpu = CudaDevice::Create({});
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  gpu_ = gpu->release();
  std::printf("%s: %s\n", gpu_->name().c_str(), gpu_->description().c_str());
}

void ConformanceTest::SetUp() {
  ASSERT_NE(gpu_, nullptr);
  EXPECT_EQ(gpu_->ledger().Read().total.live_bytes, 0);
}

void ConformanceTest::TearDown() {
  if (gpu_ == nullptr) return;
  const absl::Status status = gpu_->Synchronize();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(gpu_->ledger().Read().total.live_bytes, 0);
  EXPECT_EQ(gpu_->ledger().Read().live_allocations, 0);
}

Operand ConformanceTest::Values(const std::vector<float>& values, const Shape& shape, DType dtype) {
  Operand operand{true, shape, dtype, {}};
  operand.bytes.resize(values.size() * SizeOf(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const BFloat16 rounded(values[i]);
    const void* const from = dtype == DType::kBF16 ? static_cast<const void*>(&rounded)
                                                   : static_cast<const void*>(&values[i]);
    std::memcpy(operand.bytes.data() + i * SizeOf(dtype), from, SizeOf(dtype));
  }
  return operand;
}

Operand ConformanceTest::Normal(const Shape& shape, DType dtype, float spread) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> values(shape.num_elements());
  for (float& value : values) value = normal(generator_);
  return Values(values, shape, dtype);
}

Operand ConformanceTest::Uniform(const Shape& shape, DType dtype, float low, float high) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(shape.num_elements());
  for (float& value : values) value = uniform(generator_);
  return Values(values, shape, dtype);
}

Operand ConformanceTest::Bytes(const Shape& shape, DType dtype) {
  Operand operand{true, shape, dtype, {}};
  operand.bytes.resize(shape.num_elements() * SizeOf(dtype));
  for (uint8_t& byte : operand.bytes) byte = static_cast<uint8_t>(generator_());
  return operand;
}

Operand ConformanceTest::Ints(const std::vector<int32_t>& values) {
  Operand operand{true, {static_cast<int64_t>(values.size())}, DType::kI32, {}};
  operand.bytes.resize(values.size() * sizeof(int32_t));
  if (!values.empty()) std::memcpy(operand.bytes.data(), values.data(), operand.bytes.size());
  return operand;
}

Operand ConformanceTest::Mask(const Shape& shape, double visible) {
  std::bernoulli_distribution see(visible);
  Operand operand{true, shape, DType::kU8, {}};
  operand.bytes.resize(shape.num_elements());
  for (uint8_t& byte : operand.bytes) byte = see(generator_) ? 1 : 0;
  return operand;
}

absl::StatusOr<std::vector<Tensor>> ConformanceTest::Upload(Device& device,
                                                            const std::vector<Operand>& operands) {
  std::vector<Tensor> tensors;
  for (const Operand& operand : operands) {
    if (!operand.defined) {
      tensors.emplace_back();
      continue;
    }
    auto tensor = device.Allocate(operand.shape, operand.dtype, MemoryOwner::kActivations);
    if (!tensor.ok()) return tensor.status();
    if (absl::Status status = device.Upload(operand.bytes, *tensor); !status.ok()) return status;
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

void ConformanceTest::CheckAll(const std::string& what, const std::vector<Operand>& operands,
                               const Bound& bound, const Runner& op) {
  const auto on_cpu = Upload(*cpu_, operands);
  const auto on_gpu = Upload(*gpu_, operands);
  ASSERT_TRUE(on_cpu.ok() && on_gpu.ok()) << what << ": " << on_gpu.status();
  const auto want = op(*cpu_, *on_cpu);
  const auto got = op(*gpu_, *on_gpu);
  if (!want.ok() || !got.ok()) {
    EXPECT_EQ(got.status().code(), want.status().code())
        << what << ": the GPU says " << got.status() << ", the CPU " << want.status();
    return;
  }
  ASSERT_EQ(got->size(), want->size()) << what;
  for (size_t i = 0; i < want->size(); ++i) {
    Compare(want->size() == 1 ? what : absl::StrCat(what, " result ", i), (*want)[i], (*got)[i],
            bound);
  }
}

void ConformanceTest::Compare(const std::string& what, const Tensor& want, const Tensor& got,
                              const Bound& bound) {
  ASSERT_EQ(Describe(got.shape(), got.dtype()), Describe(want.shape(), want.dtype())) << what;
  if (!IsComparedAsFloat(want.dtype()) || (bound.relative == 0.0 && bound.absolute == 0.0)) {
    std::vector<uint8_t> want_bytes(want.num_bytes());
    std::vector<uint8_t> got_bytes(want.num_bytes());
    ASSERT_TRUE(cpu_->Download(want, absl::MakeSpan(want_bytes)).ok());
    const absl::Status status = gpu_->Download(got, absl::MakeSpan(got_bytes));
    ASSERT_TRUE(status.ok()) << what << ": " << status;
    int64_t unequal = 0;
    int64_t first = -1;
    const int64_t width = SizeOf(want.dtype());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      if (std::memcmp(&want_bytes[i * width], &got_bytes[i * width], width) == 0) continue;
      if (first < 0) first = i;
      ++unequal;
    }
    report->Note(what, 0.0, static_cast<double>(unequal));
    EXPECT_EQ(unequal, 0) << what << ": of " << want.num_elements() << " elements; the first at "
                          << first;
    return;
  }
  const auto want_values = ToFloats(*cpu_, want);
  const auto got_values = ToFloats(*gpu_, got);
  ASSERT_TRUE(want_values.ok() && got_values.ok()) << what << ": " << got_values.status();
  double squares = 0.0;
  double error_squares = 0.0;
  for (size_t i = 0; i < want_values->size(); ++i) {
    const double w = (*want_values)[i];
    if (std::isfinite(w)) squares += w * w;
  }
  const double rms = want_values->empty() ? 0.0 : std::sqrt(squares / want_values->size());
  double severity = 0.0;
  size_t at = 0;
  for (size_t i = 0; i < want_values->size(); ++i) {
    const double w = (*want_values)[i];
    const double g = (*got_values)[i];
    if (w == g || (std::isnan(w) && std::isnan(g))) continue;
    const double error = std::abs(g - w);
    error_squares += error * error;
    const double here = error / (bound.relative * std::abs(w) + bound.absolute * rms);
    if (!(here <= severity)) {
      severity = std::isfinite(here) ? here : 1e30;
      at = i;
    }
  }
  const double rel_l2 =
      squares == 0.0 ? std::sqrt(error_squares) : std::sqrt(error_squares / squares);
  report->Note(what, rel_l2, severity);
  EXPECT_LE(severity, 1.0) << what << ": rel_l2 " << rel_l2 << "; element " << at << " of "
                           << want_values->size() << ": got " << (*got_values)[at] << ", want "
                           << (*want_values)[at] << ", rms " << rms;
}

}  // namespace ltx::cuda
