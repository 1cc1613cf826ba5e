#include "engine/media/icc_profile.h"

#include <lcms2.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace ltx::media {
namespace {

struct ProfileCloser {
  void operator()(void* profile) const { cmsCloseProfile(profile); }
};
struct TransformDeleter {
  void operator()(void* transform) const { cmsDeleteTransform(transform); }
};
using ProfilePtr = std::unique_ptr<void, ProfileCloser>;

}  // namespace

absl::StatusOr<std::vector<uint8_t>> ConvertToSrgb(absl::Span<const uint8_t> pixels, int channels,
                                                   absl::Span<const uint8_t> profile) {
  const ProfilePtr source(
      cmsOpenProfileFromMem(profile.data(), static_cast<cmsUInt32Number>(profile.size())));
  if (source == nullptr) return absl::InvalidArgumentError("the ICC profile is broken");
  const auto wanted = channels == 1 ? cmsSigGrayData : cmsSigRgbData;
  if (cmsGetColorSpace(source.get()) != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ICC profile is not for ", channels == 1 ? "grey" : "RGB", " pictures"));
  }
  const ProfilePtr srgb(cmsCreate_sRGBProfile());
  const std::unique_ptr<void, TransformDeleter> transform(
      cmsCreateTransform(source.get(), channels == 1 ? TYPE_GRAY_8 : TYPE_RGB_8, srgb.get(),
                         TYPE_RGB_8, INTENT_PERCEPTUAL, 0));
  if (transform == nullptr) return absl::InvalidArgumentError("the ICC profile cannot be used");
  const size_t count = pixels.size() / channels;
  std::vector<uint8_t> converted(count * 3);
  cmsDoTransform(transform.get(), pixels.data(), converted.data(),
                 static_cast<cmsUInt32Number>(count));
  return converted;
}

}  // namespace ltx::media
