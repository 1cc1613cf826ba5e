// Options and suppressions of ThreadSanitizer that every program of a --config=tsan build has,
// unless TSAN_OPTIONS says otherwise.

extern "C" const char* __tsan_default_options() {
  // More of the past per thread than by default, so that reports show both sides of a race.
  return "history_size=4:second_deadlock_stack=1";
}

// gRPC's libraries, not instrumented themselves, move their own memory from thread to thread by
// queues without locks. Only what they do with it through the C library, directly, is left out
// here: no frame of a handler, a reactor or a header of gRPC is, whatever is below or above it.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n";
}
