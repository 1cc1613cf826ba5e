// Jobs of hardly any work through the services over loopback, and through the scheduler alone: what
// is lost, how fair it is, what it costs.

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/time/time.h"
#include "bench/service_load.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(int, clients, 64, "Clients, a connection and a thread each");
ABSL_FLAG(int, jobs, 10000, "Jobs in all");
ABSL_FLAG(int, units, 3, "Units of each job");
ABSL_FLAG(absl::Duration, unit_time, absl::Microseconds(500), "What a unit takes");
ABSL_FLAG(int, rounds, 3, "Rounds over one server; the first warms it up");

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures the scheduler and the services with a fake engine.");
  absl::ParseCommandLine(argc, argv);
  ltx::bench::LoadOptions options;
  options.clients = absl::GetFlag(FLAGS_clients);
  options.jobs = absl::GetFlag(FLAGS_jobs);
  options.units = absl::GetFlag(FLAGS_units);
  options.unit_time = absl::GetFlag(FLAGS_unit_time);
  nlohmann::json out = {
      {"clients", options.clients}, {"jobs", options.jobs}, {"units", options.units}};
  const auto reports = ltx::bench::RunServiceLoad(options, absl::GetFlag(FLAGS_rounds));
  if (!reports.ok()) {
    std::fprintf(stderr, "scheduler_bench: %s\n", reports.status().ToString().c_str());
    return 1;
  }
  out["scheduler_us_per_unit"] = ltx::bench::SchedulerMicrosecondsPerUnit(options);
  bool right = true;
  for (const ltx::bench::LoadReport& one : *reports) {
    const ltx::bench::LoadReport* const report = &one;
    out["rounds"].push_back({{"finished", report->finished},
                             {"executed", report->executed},
                             {"failed", report->failed},
                             {"wrong_progress", report->wrong_progress},
                             {"duplicated", report->duplicated},
                             {"unfairness", report->unfairness},
                             {"submit_seconds", report->submit_seconds},
                             {"run_seconds", report->run_seconds},
                             {"us_per_unit", report->microseconds_per_unit},
                             {"health_calls", report->health_calls},
                             {"health_p50_ms", report->health_p50_ms},
                             {"health_p99_ms", report->health_p99_ms},
                             {"resident_bytes_before", report->resident_bytes_before},
                             {"resident_bytes_after", report->resident_bytes_after}});
    right = right && report->finished == options.jobs && report->executed == options.jobs &&
            report->wrong_progress == 0 && report->duplicated == 0;
  }
  std::printf("%s\n", out.dump(2).c_str());
  return right ? 0 : 1;
}
