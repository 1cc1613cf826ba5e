#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/clip_report.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/failure.h"
#include "client/interrupt_watcher.h"
#include "client/json_output.h"
#include "client/progress_line.h"
#include "client/video_client.h"

namespace ltx::client {
namespace {

struct Flags {
  Connection connection;
  bool json = false;
  bool quiet = false;
  std::string output;
  v1::ListJobsRequest list;
  std::vector<std::string> states;
  v1::WatchJobRequest watch;
  std::string id;
};

/// "queued", "running", ...
std::string StateText(v1::JobState state) {
  const std::string name = v1::JobState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "JOB_STATE_"));
}

/// One line: id, state, tenant, class, how far it is or how it ended.
void PrintLine(const v1::Job& job) {
  std::string rest;
  if (job.has_error()) {
    rest = job.error().reason().empty() ? job.error().message()
                                        : job.error().reason() + ": " + job.error().message();
  } else if (job.state() == v1::JOB_STATE_QUEUED) {
    rest = absl::StrCat(job.jobs_ahead(), " ahead");
  } else if (job.state() == v1::JOB_STATE_RUNNING) {
    rest = absl::StrCat(job.progress().units_done(), "/", job.progress().units_total(), " ",
                        job.suspended() ? "suspended" : PhaseText(job.progress().phase()));
  } else if (job.has_artifact()) {
    rest = job.artifact().available() ? absl::StrCat(job.artifact().total_bytes(), " bytes")
                                      : std::string("clip not kept any more");
  }
  std::printf("%-28s %-10s %-16s %-12s %s\n", job.job_id().c_str(), StateText(job.state()).c_str(),
              job.tenant().c_str(),
              job.job_class() == v1::JOB_CLASS_BATCH ? "batch" : "interactive", rest.c_str());
}

int ShowJob(const absl::StatusOr<v1::Job>& job, const Flags& flags) {
  if (!job.ok()) return Fail(job.status());
  if (flags.json) {
    PrintJson(*job);
  } else {
    PrintLine(*job);
  }
  return 0;
}

int RunList(const Flags& flags, VideoClient* client) {
  v1::ListJobsRequest request = flags.list;
  for (const std::string& name : flags.states) {
    v1::JobState state;
    if (!v1::JobState_Parse("JOB_STATE_" + absl::AsciiStrToUpper(name), &state)) {
      return Fail(absl::InvalidArgumentError(absl::StrCat("--state \"", name, "\" is no state")));
    }
    request.add_states(state);
  }
  const bool all = request.page_size() == 0;
  do {
    const auto page = client->ListJobs(request);
    if (!page.ok()) return Fail(page.status());
    if (flags.json) PrintJson(*page);
    if (!flags.json) {
      for (const v1::Job& job : page->jobs()) PrintLine(job);
    }
    request.set_page_token(page->next_page_token());
  } while (all && !request.page_token().empty());
  if (!request.page_token().empty() && !flags.json) {
    std::fprintf(stderr, "ltx: more with --page-token %s\n", request.page_token().c_str());
  }
  return 0;
}

/// Follows the job to its end; its clip goes to flags.output, if that is set.
int RunWatch(const Flags& flags, VideoClient* client) {
  ProgressDisplay display(stderr, isatty(STDERR_FILENO) == 1);
  VideoClient::GenerateOptions options;
  if (!flags.quiet) {
    options.on_event = [&display](const v1::GenerateVideoEvent& event) { display.Show(event); };
  }
  v1::WatchJobRequest request = flags.watch;
  request.set_job_id(flags.id);
  const auto report = client->Watch(request, flags.output, options);
  display.Clear();
  if (!report.ok()) return Fail(report.status());
  if (flags.json) {
    PrintJson(*report);
  } else {
    PrintReport(*report, flags.output.empty() ? flags.id : flags.output);
  }
  return 0;
}

int RunDownload(const Flags& flags, VideoClient* client) {
  const auto job = client->GetJob(flags.id);
  if (!job.ok()) return Fail(job.status());
  if (job->state() == v1::JOB_STATE_SUCCEEDED && !job->has_artifact()) {
    return Fail(absl::FailedPreconditionError(absl::StrCat(
        "the clip of job ", flags.id, " lies on the server: ", job->report().output_path())));
  }
  if (job->state() == v1::JOB_STATE_QUEUED || job->state() == v1::JOB_STATE_RUNNING) {
    return Fail(absl::FailedPreconditionError(
        absl::StrCat("job ", flags.id, " is not over; ltx jobs watch waits for it")));
  }
  Flags last = flags;
  last.quiet = true;
  last.watch.set_from_event(job->last_event());
  return RunWatch(last, client);
}

int RunWithClient(const Flags& flags, int (*run)(const Flags&, VideoClient*)) {
  // Before the watcher, which may use it until its own end.
  absl::StatusOr<std::unique_ptr<VideoClient>> client;
  InterruptWatcher interrupts;
  client = Connect(flags.connection);
  if (!client.ok()) return Fail(client.status());
  interrupts.Watch(client->get());
  return run(flags, client->get());
}

int RunGet(const Flags& flags, VideoClient* client) {
  return ShowJob(client->GetJob(flags.id), flags);
}
int RunCancel(const Flags& flags, VideoClient* client) {
  return ShowJob(client->CancelJob(flags.id), flags);
}
int RunDelete(const Flags& flags, VideoClient* client) {
  const absl::Status status = client->DeleteJob(flags.id);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

Command AddJobsCommand(CLI::App* app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* jobs = app->add_subcommand("jobs", "Look at jobs of a server, and end them");
  jobs->require_subcommand(1);
  using Run = int (*)(const Flags&, VideoClient*);
  const auto verbs = std::make_shared<std::vector<std::pair<CLI::App*, Run>>>();
  const auto add = [&](const std::string& name, const std::string& help, Run run) {
    CLI::App* verb = jobs->add_subcommand(name, help);
    AddConnectionFlags(verb, &flags->connection);
    verbs->emplace_back(verb, run);
    return verb;
  };
  const auto add_id = [&](CLI::App* verb) {
    verb->add_option("id", flags->id, "The job's id")->required();
    return verb;
  };
  const auto add_json = [&](CLI::App* verb) {
    verb->add_flag("--json", flags->json, "Print the answer as JSON");
    return verb;
  };

  CLI::App* list = add_json(add("list", "One line a job, newest first", RunList));
  list->add_option("--state", flags->states,
                   "queued, running, succeeded, failed, cancelled or refused; may be repeated");
  list->add_option_function<std::string>(
      "--tenant", [flags](const std::string& v) { flags->list.set_tenant(v); },
      "Jobs of this tenant only");
  list->add_option_function<int32_t>(
      "--page-size", [flags](int32_t v) { flags->list.set_page_size(v); },
      "One page of so many jobs; default: all jobs");
  list->add_option_function<std::string>(
      "--page-token", [flags](const std::string& v) { flags->list.set_page_token(v); },
      "Where the page before ended");
  add_json(add_id(add("get", "What is known of a job", RunGet)));
  CLI::App* watch = add_json(add_id(add("watch", "Follow a job to its end", RunWatch)));
  watch->add_option("--output", flags->output, "File for its clip");
  watch->add_option_function<int64_t>(
      "--from-event", [flags](int64_t v) { flags->watch.set_from_event(v); },
      "Number of the first event to show");
  watch->add_flag("--quiet", flags->quiet, "No progress");
  add_json(add_id(add("cancel", "End a job within one work unit", RunCancel)));
  add_id(add("delete", "Forget a job and its clip", RunDelete));
  add_json(add_id(add("download", "Fetch the clip of a finished job", RunDownload)))
      ->add_option("--output", flags->output, "File to write")
      ->required();
  return [flags, verbs] {
    for (const auto& [verb, run] : *verbs) {
      if (verb->parsed()) return RunWithClient(*flags, run);
    }
    return 2;
  };
}

}  // namespace ltx::client
