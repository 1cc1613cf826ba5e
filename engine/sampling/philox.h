#ifndef LTX_ENGINE_SAMPLING_PHILOX_H_
#define LTX_ENGINE_SAMPLING_PHILOX_H_

#include <array>
#include <cstdint>

namespace ltx::sampling {

/// Philox4x32-10: a keyed bijection of counters (Salmon et al., "Parallel random numbers: as easy
/// as 1, 2, 3", SC11).
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9e3779b9u;
      key[1] += 0xbb67ae85u;
    }
    const uint64_t p = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t q = uint64_t{0xcd9e8d57u} * counter[2];
    counter = {static_cast<uint32_t>(q >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(q),
               static_cast<uint32_t>(p >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p)};
  }
  return counter;
}

}  // namespace ltx::sampling

#endif  // LTX_ENGINE_SAMPLING_PHILOX_H_
