#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_join.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/failure.h"
#include "client/json_output.h"
#include "client/progress_line.h"
#include "client/video_client.h"

namespace ltx::client {
namespace {

struct Flags {
  Connection connection;
  double timeout_seconds = 5;
  bool json = false;
};

void PrintHealth(const v1::HealthResponse& health) {
  const bool ready = health.state() == v1::HealthResponse::STATE_READY;
  std::printf("state    %s, version %s, up %.0f s\n", ready ? "ready" : "draining",
              health.server_version().c_str(), health.uptime_seconds());
  const v1::ModelInfo& model = health.model();
  std::printf("model    %s %s (%s) from %s; recipes %s; default %dx%dx%d at %g fps\n",
              model.name().c_str(), model.version().c_str(), model.kind().c_str(),
              model.path().c_str(), absl::StrJoin(model.recipes(), ", ").c_str(),
              model.default_width(), model.default_height(), model.default_num_frames(),
              model.default_frame_rate());
  const v1::DeviceInfo& device = health.device();
  std::printf("device   %s: %s, %s, %d threads; machine has %.2f GB free\n", device.name().c_str(),
              device.description().c_str(), device.compute_dtype().c_str(), device.threads(),
              static_cast<double>(device.system_available_bytes()) / 1e9);
  for (const v1::MemoryAmounts& memory : health.memory()) {
    std::printf("memory   %-18s %12.3f MB live %12.3f MB peak\n", memory.owner().c_str(),
                static_cast<double>(memory.live_bytes()) / 1e6,
                static_cast<double>(memory.peak_bytes()) / 1e6);
  }
  const v1::QueueInfo& queue = health.queue();
  std::printf(
      "queue    %d of %d waiting; running %s; %llu finished, %llu failed, %llu cancelled\n",
      queue.waiting(), queue.capacity(),
      queue.running_job_id().empty()
          ? "nothing"
          : (queue.running_job_id() + " (" + PhaseText(queue.running_phase()) + ")").c_str(),
      static_cast<unsigned long long>(queue.finished_jobs()),
      static_cast<unsigned long long>(queue.failed_jobs()),
      static_cast<unsigned long long>(queue.cancelled_jobs()));
}

int RunHealth(const Flags& flags) {
  const absl::Duration timeout = absl::Seconds(flags.timeout_seconds);
  Connection connection = flags.connection;
  connection.channel.timeout = timeout;
  const auto client = Connect(connection);
  if (!client.ok()) return Fail(client.status());
  const auto health = (*client)->Health(timeout);
  if (!health.ok()) return Fail(health.status());
  if (!flags.json) {
    PrintHealth(*health);
    return 0;
  }
  PrintJson(*health);
  return 0;
}

}  // namespace

Command AddHealthCommand(CLI::App* app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app->add_subcommand("health", "Model, device, memory and queue of a server");
  AddConnectionFlags(command, &flags->connection);
  command->add_option("--timeout", flags->timeout_seconds, "Seconds to wait for an answer")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print the answer as JSON");
  return [flags] { return RunHealth(*flags); };
}

}  // namespace ltx::client
