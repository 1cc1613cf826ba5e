// Options and suppressions of ThreadSanitizer that every program of a --config=tsan build has,
// unless TSAN_OPTIONS says otherwise.

extern "C" const char* __tsan_default_options() {
  // More of the past per thread than by default, so that reports show both sides of a race.
  return "history_size=4:second_deadlock_stack=1";
}

// gRPC hands calls from thread to thread through queues and counters without locks. Neither these
// nor what is ordered by them can be seen in libraries that are not instrumented, so all that gRPC
// does with its own memory looks like a race. Named are places of gRPC that call nothing of this
// project: its handlers and reactors stay visible though gRPC is always further down their stacks.
extern "C" const char* __tsan_default_suppressions() {
  return
      // Copies, allocations and system calls made by gRPC.
      "called_from_lib:libgrpc.so\n"
      "called_from_lib:libgrpc++.so\n"
      "called_from_lib:libgpr.so\n"
      // The same for the statuses that gRPC passes about inside (grpc_error_handle). A status of
      // this project is not lost to view: its word is copied and dropped by inline functions.
      "called_from_lib:libabsl_status.so\n"
      "called_from_lib:libabsl_cord.so\n"
      "called_from_lib:libabsl_strings.so\n"
      // The parts of gRPC in its headers, compiled here: one batch of a call, and what it is kept
      // in. Where an inline function of the standard library is on top, the caller is named.
      "race_top:grpc::\n"
      "race:grpc::internal::CallOp\n"
      "race:grpc::internal::InterceptorBatchMethodsImpl\n"
      "race:grpc::internal::CallbackWithSuccessTag::Set\n"
      "race:Impl::~ServerCallback\n";
}
