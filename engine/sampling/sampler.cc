#include "engine/sampling/sampler.h"

#include "absl/strings/str_cat.h"

namespace ltx::sampling {

std::string Sampler::ToString() const {
  switch (kind) {
    case Kind::kEuler:
      return "euler";
    case Kind::kEulerAncestral:
      return absl::StrCat("euler_ancestral eta=", eta, " s_noise=", s_noise);
    case Kind::kEulerCfgPp:
      return absl::StrCat("euler_cfg_pp eta=", eta, " s_noise=", s_noise);
    case Kind::kGradientEstimating:
      return absl::StrCat("gradient_estimating_euler gamma=", gamma);
    case Kind::kRes2s:
      return absl::StrCat("res_2s eta=", eta, refine_anchor ? "" : " unrefined",
                          uniform_noise ? "" : " per-token noise");
  }
  return "";
}

}  // namespace ltx::sampling
