#include <cstdio>
#include <memory>
#include <string>

#include "client/commands.h"
#include "client/failure.h"
#include "engine/checkpoint/inspect.h"

namespace ltx::client {

Command AddInspectCommand(CLI::App* app) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand(
      "inspect", "What a checkpoint file holds: config, tensors, dtypes, bytes");
  command->add_option("checkpoint", *path, "A safetensors file")->required();
  return [path] {
    const auto summary = checkpoint::InspectCheckpoint(*path);
    if (!summary.ok()) return Fail(summary.status());
    std::fputs(checkpoint::RenderSummary(*summary).c_str(), stdout);
    return 0;
  };
}

}  // namespace ltx::client
