// Tells ThreadSanitizer how gRPC hands calls from thread to thread, which it does by queues and
// counters without locks in libraries that are built without it. The functions here take the place
// of gRPC's in the program and add the edges that its callback API promises:
//
// - from the start of a batch of operations to the callback at its end;
// - from all reactions of a call to the last one, OnDone().
//
// Calls of the blocking API start and end on one thread and need none.

#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>
#include <memory>

#include "tests/sanitizers/next_function.h"

namespace {

using grpc::internal::ServerCallbackCall;
using grpc::internal::ServerReactor;
using ltx::testing::NextFunction;

NextFunction<grpc_call_error(grpc_call*, const grpc_op*, size_t, void*, void*)> next_start_batch(
    "grpc_call_start_batch");
NextFunction<void(ServerCallbackCall*, bool)> next_schedule_on_done(
    "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
NextFunction<void(ServerCallbackCall*, ServerReactor*)> next_call_on_cancel(
    "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
NextFunction<void(grpc_completion_queue_functor*, int)> next_run_callback(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori");

/// Reacts to the cancellation of a call, once, in the place of its reactor: right after OnCancel()
/// gRPC drops a reference to the call, out of sight.
class CancelledReactor final : public ServerReactor {
 public:
  CancelledReactor(ServerReactor* reactor, std::atomic_int* references)
      : reactor_(reactor), references_(references) {}

  void OnCancel() override {
    const std::unique_ptr<CancelledReactor> self(this);
    reactor_->OnCancel();
    __tsan_release(references_);
  }
  void OnDone() override {}
  bool InternalInlineable() override { return reactor_->InternalInlineable(); }

 private:
  ServerReactor* const reactor_;
  std::atomic_int* const references_;
};

}  // namespace

extern "C" grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t nops,
                                                 void* tag, void* reserved) {
  __tsan_release(tag);
  return next_start_batch(call, ops, nops, tag, reserved);
}

// CallbackWithSuccessTag::StaticRun() is inline, a weak symbol wherever it is used.
void RunCallback(grpc_completion_queue_functor* callback, int ok) __asm__(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori");
void RunCallback(grpc_completion_queue_functor* callback, int ok) {
  __tsan_acquire(callback);
  next_run_callback(callback, ok);
}

namespace grpc::internal {

// The last reference to the call is gone.
void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  __tsan_acquire(&callbacks_outstanding_);
  next_schedule_on_done(this, inline_ondone);
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  // The handler, which counts this down too, has returned.
  __tsan_acquire(&on_cancel_conditions_remaining_);
  next_call_on_cancel(
      this, std::make_unique<CancelledReactor>(reactor, &callbacks_outstanding_).release());
}

}  // namespace grpc::internal
