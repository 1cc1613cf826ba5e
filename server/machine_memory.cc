#include "server/machine_memory.h"

#include <fstream>
#include <string>

namespace ltx::server {

MachineMemory ReadMachineMemory() {
  MachineMemory memory;
  std::ifstream info("/proc/meminfo");
  std::string key;
  int64_t kibibytes;
  std::string unit;
  while (info >> key >> kibibytes) {
    std::getline(info, unit);
    if (key == "MemTotal:") memory.total_bytes = kibibytes * 1024;
    if (key == "MemAvailable:") memory.available_bytes = kibibytes * 1024;
  }
  return memory;
}

}  // namespace ltx::server
