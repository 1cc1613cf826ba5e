#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "client/commands.h"
#include "proto/ltx/version.h"

int main(int argc, char** argv) {
  CLI::App app("Generates clips with an ltx_server, and looks at clips and checkpoints.", "ltx");
  app.set_version_flag("--version", std::string("ltx ") + ltx::kVersion);
  app.require_subcommand(1);
  const std::vector<std::pair<std::string, ltx::client::Command>> commands = {
      {"generate", ltx::client::AddGenerateCommand(&app)},
      {"plan", ltx::client::AddPlanCommand(&app)},
      {"jobs", ltx::client::AddJobsCommand(&app)},
      {"condition", ltx::client::AddConditionCommand(&app)},
      {"health", ltx::client::AddHealthCommand(&app)},
      {"verify", ltx::client::AddVerifyCommand(&app)},
      {"inspect", ltx::client::AddInspectCommand(&app)},
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "ltx: %s (see ltx --help)\n", error.what());
    return 2;
  }
  for (const auto& [name, command] : commands) {
    if (app.got_subcommand(name)) return command();
  }
  return 2;
}
