#ifndef LTX_ENGINE_VIDEO_VAE_TEST_WEIGHTS_H_
#define LTX_ENGINE_VIDEO_VAE_TEST_WEIGHTS_H_

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weight_loader.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/host_copy.h"

namespace ltx::video_vae {

/// Weights made up by a test, as if they had been read from a file.
class TestWeights {
 public:
  /// Every element by its flat index.
  using Fill = std::function<float(int64_t)>;

  TestWeights() : file_(std::make_shared<File>()) {}

  TestWeights& Add(const std::string& name, const Shape& shape, const Fill& fill) {
    std::vector<float> values(shape.num_elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = fill(static_cast<int64_t>(i));
    file_->Put(name, shape, values);
    return *this;
  }
  TestWeights& AddConstant(const std::string& name, const Shape& shape, float value) {
    return Add(name, shape, [value](int64_t) { return value; });
  }
  /// Small values of both signs that differ from element to element.
  TestWeights& AddVaried(const std::string& name, const Shape& shape) {
    return Add(name, shape,
               [](int64_t i) { return static_cast<float>((i * 37) % 19 - 9) / 64.0f; });
  }
  /// `module`.weight of `shape` and a zero `module`.bias.
  TestWeights& AddModule(const std::string& module, const Shape& shape) {
    AddVaried(absl::StrCat(module, ".weight"), shape);
    return AddConstant(absl::StrCat(module, ".bias"), Shape({shape.dim(0)}), 0.0f);
  }
  TestWeights& Remove(const std::string& name) {
    file_->Drop(name);
    return *this;
  }

  /// Call once, when all weights are there.
  checkpoint::WeightLoader Loader(Device& device, DType dtype = DType::kF32) {
    EXPECT_TRUE(set_.Add(file_).ok());
    return checkpoint::WeightLoader(&device, &set_, dtype, MemoryOwner::kWeightsVideoVae);
  }

 private:
  class File final : public checkpoint::SafetensorsFile {
   public:
    File() { path_ = "test.safetensors"; }
    void Put(const std::string& name, const Shape& shape, const std::vector<float>& values) {
      buffers_.emplace_back(values.size() * sizeof(float));
      std::vector<uint8_t>& bytes = buffers_.back();
      if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
      entries_[name] = Entry{DType::kF32, shape, absl::MakeConstSpan(bytes)};
    }
    void Drop(const std::string& name) { entries_.erase(name); }

   private:
    std::deque<std::vector<uint8_t>> buffers_;
  };

  std::shared_ptr<File> file_;
  checkpoint::WeightSet set_;
};

/// A CPU device and shorthands around it.
class VideoVaeTest : public ::testing::Test {
 protected:
  VideoVaeTest() {
    cpu::CpuDeviceOptions options;
    options.threads = 2;
    device_ = std::move(cpu::CpuDevice::Create(options)).value();
  }

  Device& device() { return *device_; }

  Tensor Make(const Shape& shape, const TestWeights::Fill& fill) {
    std::vector<float> values(shape.num_elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = fill(static_cast<int64_t>(i));
    return TensorFromFloats(*device_, values, shape).value();
  }
  /// 0, 1, 2, ...
  Tensor Iota(const Shape& shape) {
    return Make(shape, [](int64_t i) { return static_cast<float>(i); });
  }
  std::vector<float> Values(const Tensor& tensor) { return ToFloats(*device_, tensor).value(); }

  std::unique_ptr<cpu::CpuDevice> device_;
};

}  // namespace ltx::video_vae

#endif  // LTX_ENGINE_VIDEO_VAE_TEST_WEIGHTS_H_
