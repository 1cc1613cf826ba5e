#include "kernels/device.h"

#include <utility>

#include "kernels/status_macros.h"

namespace ltx {
namespace {

/// Each tensor as it is added.
class OneByOne final : public Uploads {
 public:
  explicit OneByOne(Device* device) : device_(device) {}

  absl::Status Add(std::shared_ptr<const ByteSource> source, const Tensor& tensor) override {
    const int64_t size = source->size();
    if (tensor.host_accessible() && tensor.num_bytes() == size) {
      return source->Read(0, absl::MakeSpan(tensor.data<uint8_t>(), static_cast<size_t>(size)));
    }
    std::vector<uint8_t> bytes(static_cast<size_t>(size));
    LTX_RETURN_IF_ERROR(source->Read(0, absl::MakeSpan(bytes)));
    return device_->Upload(bytes, tensor);
  }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  Device* const device_;
};

}  // namespace

std::unique_ptr<Uploads> Device::StartUploads() { return std::make_unique<OneByOne>(this); }

absl::StatusOr<Tensor> Device::NormConv(Tensor x, const ConvWeight& weight,
                                        const ConvOptions& options, const NormConvOptions& around) {
  if (around.into.defined()) {
    NormConvOptions elsewhere = around;
    Tensor into = std::exchange(elsewhere.into, Tensor());
    LTX_ASSIGN_OR_RETURN(const Tensor y, NormConv(std::move(x), weight, options, elsewhere));
    LTX_RETURN_IF_ERROR(Copy(y, &into));
    return into;
  }
  if (around.depth_to_space != NormConvOptions().depth_to_space) {
    // A device may still do the rest at once.
    NormConvOptions rest = around;
    rest.depth_to_space = NormConvOptions().depth_to_space;
    rest.drop_first_frame = false;
    LTX_ASSIGN_OR_RETURN(x, NormConv(std::move(x), weight, options, rest));
    return DepthToSpace(x, around.depth_to_space, around.drop_first_frame);
  }
  if (around.norm) {
    LTX_ASSIGN_OR_RETURN(x, RmsNorm(x, Tensor(), around.norm->epsilon, /*one_plus_weight=*/false,
                                    around.norm->activation));
  }
  return Conv(x, weight, options);
}

}  // namespace ltx
