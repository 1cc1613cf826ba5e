#ifndef LTX_KERNELS_CPU_OPENMP_ENVIRONMENT_H_
#define LTX_KERNELS_CPU_OPENMP_ENVIRONMENT_H_

#include "absl/status/status.h"

namespace ltx::cpu {

/// Makes the OpenMP threads of this process sleep while they wait for work, as
/// OMP_WAIT_POLICY=passive says. Call it first in main(): unless the user has chosen a policy
/// (OMP_WAIT_POLICY or GOMP_SPINCOUNT is set), it sets that variable and starts the program anew in
/// the same process, with the same arguments; that call does not return.
///
/// Why: an operation of the CPU device ends with a barrier. libgomp's default there is to spin for
/// some milliseconds (300000 rounds), which a partner that was put off its core cannot answer: on a
/// machine with other work each of thousands of barriers costs a time slice, and a clip takes
/// several times as long. Sleeping costs a wake-up of some microseconds instead.
/// Why anew: libgomp reads the variables in its constructor, before main(), and has no call to
/// change them.
///
/// UNKNOWN if the program cannot be started again; it then goes on with the default.
absl::Status UsePassiveOpenMpThreads(char** argv);

}  // namespace ltx::cpu

#endif  // LTX_KERNELS_CPU_OPENMP_ENVIRONMENT_H_
