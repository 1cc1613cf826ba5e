#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proto/ltx/v1/video_service.grpc.pb.h"
#include "proto/ltx/v1/video_service.pb.h"
#include "tests/sanitizers/program_test.h"

namespace ltx::testing {
namespace {

using GrpcEventsTest = ProgramTest;

/// What a call does where gRPC calls this project.
struct Reactions {
  std::function<void()> handler = [] {};
  std::function<void()> on_write_done = [] {};
  std::function<void()> on_cancel = [] {};
  std::function<void()> on_done = [] {};
};

/// Messages of a call before its end; more than one, as gRPC uses what keeps one again.
constexpr int kMessages = 3;

/// Sends kMessages and ends, or waits for its cancellation and lets somebody else end it. Without
/// locks: all order is gRPC's.
class Stream final : public grpc::ServerWriteReactor<v1::GenerateVideoEvent> {
 public:
  Stream(const Reactions& reactions, bool endless) : reactions_(reactions), endless_(endless) {
    Write();
    if (endless_) {
      OnOtherThread([this] {
        while (!cancelled_.load(std::memory_order_relaxed)) absl::SleepFor(absl::Milliseconds(1));
        Finish(grpc::Status::CANCELLED);
      });
    }
  }

  void OnWriteDone(bool ok) override {
    reactions_.on_write_done();
    if (ok && started_ < kMessages) {
      Write();
    } else if (!endless_) {
      Finish(grpc::Status::OK);
    }
  }
  void OnCancel() override {
    reactions_.on_cancel();
    cancelled_.store(true, std::memory_order_relaxed);
  }
  void OnDone() override {
    reactions_.on_done();
    delete this;
  }

 private:
  void Write() {
    ++started_;
    OnOtherThread([this] { StartWrite(&event_); });
  }
  /// Waiting for its end would be an order of its own.
  static void OnOtherThread(std::function<void()> body) { std::thread(std::move(body)).detach(); }

  const Reactions& reactions_;
  const bool endless_;
  const v1::GenerateVideoEvent event_;
  int started_ = 0;
  std::atomic<bool> cancelled_{false};
};

class StreamService final : public v1::VideoService::CallbackService {
 public:
  StreamService(Reactions reactions, bool endless)
      : reactions_(std::move(reactions)), endless_(endless) {}

  grpc::ServerWriteReactor<v1::GenerateVideoEvent>* GenerateVideo(
      grpc::CallbackServerContext*, const v1::GenerateVideoRequest*) override {
    reactions_.handler();
    return std::make_unique<Stream>(reactions_, endless_).release();
  }

 private:
  const Reactions reactions_;
  const bool endless_;
};

/// One call of a server in this process, until all of it is over; an endless one is cancelled.
void Call(const Reactions& reactions, bool endless) {
  StreamService service(reactions, endless);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::VideoService::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto reader = stub->GenerateVideo(&context, v1::GenerateVideoRequest());
  v1::GenerateVideoEvent event;
  for (int message = 0; message < kMessages; ++message) EXPECT_TRUE(reader->Read(&event));
  if (endless) context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(),
            endless ? grpc::StatusCode::CANCELLED : grpc::StatusCode::OK);
  server->Shutdown();
  server->Wait();
}

/// One number for a reaction, which `set` puts in its place, and for a thread that gRPC knows
/// nothing of.
void CallBesideABystander(const std::function<void(Reactions*, std::function<void()>)>& set) {
  int number = 0;
  absl::Notification over;
  std::thread bystander([&] {
    ++number;
    over.WaitForNotification();
  });
  Reactions reactions;
  set(&reactions, [&] { ++number; });
  Call(reactions, /*endless=*/true);
  over.Notify();
  bystander.join();
}

TEST_F(GrpcEventsTest, AHandlersRaceIsReported) {
  ExpectRace([] {
    CallBesideABystander([](Reactions* all, auto race) { all->handler = std::move(race); });
  });
}

TEST_F(GrpcEventsTest, AReactionsRaceIsReported) {
  ExpectRace([] {
    CallBesideABystander([](Reactions* all, auto race) { all->on_write_done = std::move(race); });
  });
}

TEST_F(GrpcEventsTest, ACancellationsRaceIsReported) {
  ExpectRace([] {
    CallBesideABystander([](Reactions* all, auto race) { all->on_cancel = std::move(race); });
  });
}

TEST_F(GrpcEventsTest, TheLastReactionsRaceIsReported) {
  ExpectRace([] {
    CallBesideABystander([](Reactions* all, auto race) { all->on_done = std::move(race); });
  });
}

// The handler, its messages one after the other, and the end; the cancellation, and the end.
TEST_F(GrpcEventsTest, ReactionsOfACallAreOrdered) {
  ExpectClean([] {
    constexpr int kTimes = 20;
    for (int time = 0; time < kTimes; ++time) {
      const bool endless = time % 2 == 0;
      int messages = 1;
      int cancellations = 0;
      bool ended = false;
      Reactions reactions;
      reactions.handler = [&] { messages = 0; };
      reactions.on_write_done = [&] { ++messages; };
      reactions.on_cancel = [&] { ++cancellations; };
      reactions.on_done = [&] {
        EXPECT_EQ(messages, kMessages);
        EXPECT_EQ(cancellations, endless ? 1 : 0);
        ended = true;
      };
      Call(reactions, endless);
      EXPECT_TRUE(ended);
    }
  });
}

}  // namespace
}  // namespace ltx::testing
