#ifndef LTX_CLIENT_COMMANDS_H_
#define LTX_CLIENT_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace ltx::client {

/// The verbs of the `ltx` program. Each adds a subcommand to `app` and returns what runs it: an
/// exit status, 0 for success. Failures put one line on stderr.
using Command = std::function<int()>;

Command AddGenerateCommand(CLI::App* app);
Command AddPlanCommand(CLI::App* app);
Command AddJobsCommand(CLI::App* app);
Command AddConditionCommand(CLI::App* app);
Command AddHealthCommand(CLI::App* app);
Command AddVerifyCommand(CLI::App* app);
Command AddInspectCommand(CLI::App* app);

}  // namespace ltx::client

#endif  // LTX_CLIENT_COMMANDS_H_
