#ifndef LTX_SERVER_MACHINE_MEMORY_H_
#define LTX_SERVER_MACHINE_MEMORY_H_

#include <cstdint>

namespace ltx::server {

/// Memory of the machine as its system tells it, everybody's use included; never a measure of this
/// process. Zeros: not to be had.
struct MachineMemory {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;
};

MachineMemory ReadMachineMemory();

}  // namespace ltx::server

#endif  // LTX_SERVER_MACHINE_MEMORY_H_
