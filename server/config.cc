#include "server/config.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"
#include "proto/ltx/version.h"
#include "server/auth/listen_credentials.h"

namespace ltx::server {
namespace {

using nlohmann::json;

absl::Status WrongType(const std::string& key, const json& value, absl::string_view legal) {
  return absl::InvalidArgumentError(
      absl::StrCat("configuration key \"", key, "\": ", value.dump(), " is not ", legal));
}

absl::Status Assign(const std::string& key, const json& value, std::string* field) {
  if (!value.is_string()) return WrongType(key, value, "a string");
  *field = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status Assign(const std::string& key, const json& value, int* field) {
  if (!value.is_number_integer() ||
      value.get<int64_t>() != static_cast<int>(value.get<int64_t>())) {
    return WrongType(key, value, "an integer");
  }
  *field = value.get<int>();
  return absl::OkStatus();
}

absl::Status Assign(const std::string& key, const json& value, int64_t* field) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<int64_t>() < 0)) {
    return WrongType(key, value, "an integer");
  }
  *field = value.get<int64_t>();
  return absl::OkStatus();
}

absl::Status Assign(const std::string& key, const json& value, double* field) {
  if (!value.is_number()) return WrongType(key, value, "a number");
  *field = value.get<double>();
  return absl::OkStatus();
}

absl::Status Assign(const std::string& key, const json& value, bool* field) {
  if (!value.is_boolean()) return WrongType(key, value, "true or false");
  *field = value.get<bool>();
  return absl::OkStatus();
}

absl::Status Assign(const std::string& key, const json& value, std::vector<std::string>* field) {
  std::vector<std::string> items;
  if (!value.is_array()) return WrongType(key, value, "a list of strings");
  for (const json& item : value) {
    if (!item.is_string()) return WrongType(key, value, "a list of strings");
    items.push_back(item.get<std::string>());
  }
  *field = std::move(items);
  return absl::OkStatus();
}

/// Calls visit(json key, field, help) for the bounds of uploads.
template <typename Visitor>
void VisitConditionFields(ConditionConfig* config, const Visitor& visit) {
  visit("condition_store_bytes", &config->store_bytes, "Host memory for uploads");
  visit("condition_tenant_bytes", &config->tenant_bytes, "Host memory for uploads of one tenant");
  visit("condition_max_bytes", &config->max_bytes, "Largest upload");
  visit("condition_max_pixels", &config->max_pixels, "Largest picture or frame");
  visit("condition_max_frames", &config->max_frames, "Longest clip, in frames");
  visit("condition_max_seconds", &config->max_seconds, "Longest sound, in seconds");
  visit("condition_max_decoded_bytes", &config->max_decoded_bytes,
        "All frames of a clip as RGB, in bytes");
  visit("condition_ttl_seconds", &config->ttl_seconds, "Seconds from the last use to forgetting");
  visit("condition_max_uploads", &config->max_uploads, "Uploads at a time");
  visit("condition_upload_seconds", &config->upload_seconds,
        "Seconds for one upload, decoding included");
}

/// The same for who may call, and how much of it.
template <typename Visitor>
void VisitSecurityFields(ServerConfig* config, const Visitor& visit) {
  visit("tls_cert", &config->tls_cert, "PEM file of the server's certificate chain");
  visit("tls_key", &config->tls_key, "PEM file of the server's key");
  visit("tls_client_ca", &config->tls_client_ca,
        "PEM file of the authorities whose certificates clients must show");
  visit("token_file", &config->token_file, "File of bearer tokens, one TENANT TOKEN a line");
  visit("allow_insecure_token", &config->allow_insecure_token,
        "Take tokens without TLS on a port that other machines reach (true or false)");
  visit("tenant_max_jobs", &config->tenant_max_jobs,
        "Jobs of one tenant that may wait and run at a time; 0: as many as the queue takes");
  visit("max_message_bytes", &config->max_message_bytes, "Largest message from a client");
  visit("max_concurrent_streams", &config->max_concurrent_streams,
        "Calls at a time on one connection");
}

/// --condition-max-bytes for condition_max_bytes.
std::string FlagOf(const std::string& key) {
  return absl::StrCat("--", absl::StrReplaceAll(key, {{"_", "-"}}));
}

absl::Status Assign(const std::string& key, const json& value,
                    std::map<std::string, double>* field) {
  std::map<std::string, double> items;
  if (!value.is_object()) return WrongType(key, value, "an object of numbers");
  for (const auto& item : value.items()) {
    if (!item.value().is_number()) return WrongType(key, value, "an object of numbers");
    items[item.key()] = item.value().get<double>();
  }
  *field = std::move(items);
  return absl::OkStatus();
}

absl::Status AssignRungPart(const std::string& key, const std::string& part, const json& value,
                            Rung* rung) {
  const std::string name = absl::StrCat(key, ".", part);
  if (part == "name") return Assign(name, value, &rung->name);
  if (part == "width") return Assign(name, value, &rung->geometry.width);
  if (part == "height") return Assign(name, value, &rung->geometry.height);
  if (part == "num_frames") return Assign(name, value, &rung->geometry.num_frames);
  if (part == "max_seconds") return Assign(name, value, &rung->max_seconds);
  if (part == "max_bytes") return Assign(name, value, &rung->max_bytes);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown configuration key \"", name,
                   "\"; a rung has name, width, height, num_frames, max_seconds and max_bytes"));
}

absl::Status Assign(const std::string& key, const json& value, std::vector<Rung>* field) {
  if (!value.is_array()) return WrongType(key, value, "a list of rungs");
  std::vector<Rung> rungs;
  for (const json& item : value) {
    if (!item.is_object()) return WrongType(key, item, "a rung, which is an object");
    Rung rung;
    for (const auto& part : item.items()) {
      LTX_RETURN_IF_ERROR(AssignRungPart(key, part.key(), part.value(), &rung));
    }
    rungs.push_back(std::move(rung));
  }
  *field = std::move(rungs);
  return absl::OkStatus();
}

/// Calls visit(json key, field) for every field; the one list that file and checks share.
template <typename Visitor>
void VisitFields(ServerConfig* config, const Visitor& visit) {
  visit("listen", &config->listen);
  visit("model", &config->model);
  visit("device", &config->device);
  visit("threads", &config->threads);
  visit("compute_dtype", &config->compute_dtype);
  visit("cuda_graphs", &config->cuda_graphs);
  visit("queue_capacity", &config->queue_capacity);
  visit("queue_timeout_seconds", &config->queue_timeout_seconds);
  visit("batch_ageing_seconds", &config->batch_ageing_seconds);
  visit("tenant_weights", &config->tenant_weights);
  visit("state_dir", &config->state_dir);
  visit("artifact_quota_mib", &config->artifact_quota_mib);
  visit("job_ttl_seconds", &config->job_ttl_seconds);
  visit("job_history", &config->job_history);
  visit("output_roots", &config->output_roots);
  visit("work_dir", &config->work_dir);
  visit("drain_seconds", &config->drain_seconds);
  visit("metrics_listen", &config->metrics_listen);
  visit("prompt_cache_bytes", &config->prompt_cache_bytes);
  visit("prompt_enhancement_system_prompt_file", &config->prompt_enhancement_system_prompt_file);
  visit("fused_cache_bytes", &config->fused_cache_bytes);
  visit("rungs", &config->rungs);
  visit("memory_budget_bytes", &config->memory_budget_bytes);
  visit("calibration_seconds", &config->calibration_seconds);
  VisitConditionFields(&config->condition, [&visit](const std::string& key, auto* field,
                                                    const char*) { visit(key, field); });
  VisitSecurityFields(
      config, [&visit](const std::string& key, auto* field, const char*) { visit(key, field); });
  visit("reflection", &config->reflection);
  visit("log_level", &config->log_level);
  visit("log_format", &config->log_format);
}

absl::Status RequireOneOf(absl::string_view key, const std::string& value,
                          const std::set<std::string>& legal) {
  if (legal.count(value) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " \"", value, "\" is not one of ", absl::StrJoin(legal, ", ")));
}

/// gRPC takes a port modulo 65536, so a wrong one would be another port.
absl::Status CheckListen(absl::string_view key, absl::string_view listen) {
  const size_t colon = listen.rfind(':');
  int port = -1;
  if (colon != absl::string_view::npos && colon > 0 &&
      absl::SimpleAtoi(listen.substr(colon + 1), &port) && port >= 0 && port <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key, " \"", listen, "\" is not HOST:PORT with a port in 0..65535"));
}

void DeclareJobFlags(ServerConfig* config, CLI::App* app) {
  app->add_option("--queue-timeout-seconds", config->queue_timeout_seconds,
                  "Seconds a job may wait for its start; 0: as long as it likes");
  app->add_option("--batch-ageing-seconds", config->batch_ageing_seconds,
                  "Seconds of the device for interactive jobs before a waiting batch job has its "
                  "turn; 0: as many as they like");
  app->add_option_function<std::vector<std::string>>(
         "--tenant-weight",
         [config](const std::vector<std::string>& items) {
           config->tenant_weights.clear();
           for (const std::string& item : items) {
             const size_t equals = item.rfind('=');
             double weight = 0;
             if (equals == std::string::npos ||
                 !absl::SimpleAtod(item.substr(equals + 1), &weight)) {
               throw CLI::ValidationError("--tenant-weight", "\"" + item + "\" is not NAME=NUMBER");
             }
             config->tenant_weights[item.substr(0, equals)] = weight;
           }
         },
         "NAME=WEIGHT: a tenant's share of the device, 1 for those not named; may be repeated")
      ->take_all();
  app->add_option("--state-dir", config->state_dir,
                  "Folder for jobs and clips that survive the process");
  app->add_option("--artifact-quota-mib", config->artifact_quota_mib,
                  "MiB of finished clips to keep");
  app->add_option("--job-ttl-seconds", config->job_ttl_seconds,
                  "Seconds for which a finished job is remembered");
  app->add_option("--job-history", config->job_history, "Finished jobs to remember at the most");
}

absl::Status RequireRange(absl::string_view key, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(key, " ", value, " is not in ", low, "..", high));
}

absl::Status ValidateConditions(ConditionConfig condition) {
  absl::Status status;
  VisitConditionFields(&condition, [&status](const std::string& key, auto* field, const char*) {
    // Not a number fails too.
    if (*field > 0 && std::isfinite(static_cast<double>(*field))) return;
    status.Update(
        absl::InvalidArgumentError(absl::StrCat(key, " ", *field, " is not positive and finite")));
  });
  return status;
}

absl::Status ValidateSecurity(const ServerConfig& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return absl::InvalidArgumentError("tls_cert and tls_key belong together: give both or none");
  }
  if (config.tls_cert.empty() && !config.tls_client_ca.empty()) {
    return absl::InvalidArgumentError("tls_client_ca needs tls_cert and tls_key");
  }
  if (!config.token_file.empty() && config.tls_cert.empty() && !config.allow_insecure_token &&
      !IsLoopback(config.listen)) {
    return absl::InvalidArgumentError(
        absl::StrCat("token_file: tokens would come to ", config.listen,
                     " in the clear; use tls_cert and tls_key, listen on loopback, or set "
                     "allow_insecure_token"));
  }
  LTX_RETURN_IF_ERROR(RequireRange("tenant_max_jobs", config.tenant_max_jobs, 0, 100000));
  // A prompt has 16 KiB; protobuf itself ends at 2 GiB.
  LTX_RETURN_IF_ERROR(
      RequireRange("max_message_bytes", config.max_message_bytes, 64 << 10, 1 << 30));
  return RequireRange("max_concurrent_streams", config.max_concurrent_streams, 1, 100000);
}

/// Declares the flags on `app`, bound to `config`.
void DeclareFlags(ServerConfig* config, std::string* config_file, CLI::App* app) {
  app->add_option("--listen", config->listen, "HOST:PORT to serve on; port 0: any free one");
  app->add_option("--model", config->model, "Folder of the model set");
  app->add_option("--device", config->device, "auto, cpu or cuda:N");
  app->add_option("--config", *config_file, "JSON file with these settings; flags win over it");
  app->add_option("--threads", config->threads, "CPU threads of one operation; 0: one per core");
  app->add_option("--compute-dtype", config->compute_dtype,
                  "auto (f32 on a CPU, bf16 on a GPU), f32 or bf16");
  app->add_option("--cuda-graphs", config->cuda_graphs,
                  "On a GPU: record the transformer's forwards and replay them (true, false)");
  app->add_option("--queue-capacity", config->queue_capacity, "Jobs of one class that may wait");
  DeclareJobFlags(config, app);
  app->add_option("--output-root", config->output_roots,
                  "Folder below which a request may have its file written; may be repeated");
  app->add_option("--work-dir", config->work_dir, "Scratch for clips without a state folder");
  app->add_option("--drain-seconds", config->drain_seconds,
                  "Seconds the running job gets to finish after SIGTERM");
  app->add_option("--metrics-listen", config->metrics_listen,
                  "HOST:PORT of /metrics, /healthz and /readyz over HTTP, unauthenticated; empty: "
                  "none");
  app->add_option("--prompt-cache-bytes", config->prompt_cache_bytes,
                  "Device memory for encoded prompts; 0: none are kept");
  app->add_option("--prompt-enhancement-system-prompt-file",
                  config->prompt_enhancement_system_prompt_file,
                  "File that tells the text model how to rewrite prompts; empty: requests for it "
                  "are refused");
  app->add_option("--fused-cache-bytes", config->fused_cache_bytes,
                  "Most device memory for transformers with the distilled LoRA fused in, kept "
                  "between jobs; -1: what the memory budget leaves, 0: none are kept");
  app->add_option("--memory-budget-bytes", config->memory_budget_bytes,
                  "Device memory this server may use, weights included; 0: nine tenths of what is "
                  "available at the start");
  app->add_option("--calibration-seconds", config->calibration_seconds,
                  "Most seconds to measure what work costs before the server is ready; 0: none, "
                  "-1: 2, and 40 on a GPU");
  VisitConditionFields(&config->condition,
                       [app](const std::string& key, auto* field, const std::string& help) {
                         app->add_option(FlagOf(key), *field, help);
                       });
  VisitSecurityFields(config, [app](const std::string& key, auto* field, const std::string& help) {
    app->add_option(FlagOf(key), *field, help);
  });
  app->add_option("--reflection", config->reflection, "Server reflection (true or false)");
  app->add_option("--log-level", config->log_level, "trace, debug, info, warn or error");
  app->add_option("--log-format", config->log_format, "text or json");
}

absl::Status ValidateJobs(const ServerConfig& config) {
  for (const auto& [key, seconds] :
       {std::pair<const char*, double>{"queue_timeout_seconds", config.queue_timeout_seconds},
        {"batch_ageing_seconds", config.batch_ageing_seconds},
        {"job_ttl_seconds", config.job_ttl_seconds}}) {
    if (std::isfinite(seconds) && seconds >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(key, " ", seconds, " is negative or not finite"));
  }
  for (const auto& [tenant, weight] : config.tenant_weights) {
    // Beyond these a share is nothing, or everything, and sums of times lose their digits.
    if (weight >= 1e-3 && weight <= 1e3 && !tenant.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("tenant_weights: \"", tenant, "\" ", weight,
                                                   " is not a name with a weight in 0.001..1000"));
  }
  if (config.artifact_quota_mib < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("artifact_quota_mib ", config.artifact_quota_mib, " is not positive"));
  }
  if (config.job_history < 1 || config.job_history > 100000) {
    return absl::InvalidArgumentError(
        absl::StrCat("job_history ", config.job_history, " is not in 1..100000"));
  }
  return absl::OkStatus();
}

absl::Status ValidateGovernor(const ServerConfig& config) {
  LTX_RETURN_IF_ERROR(RungLadder::Create(config.rungs).status());
  if (config.memory_budget_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_budget_bytes ", config.memory_budget_bytes, " is negative"));
  }
  // Ten minutes: by then it is no calibration any more.
  const double calibration = config.calibration_seconds;
  if (calibration != -1 && !(calibration >= 0 && calibration <= 600)) {
    return absl::InvalidArgumentError(
        absl::StrCat("calibration_seconds ", calibration, " is neither -1 nor in 0..600"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyConfigJson(absl::string_view json_text, ServerConfig* config) {
  const json parsed = json::parse(json_text.begin(), json_text.end(), nullptr,
                                  /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError("the configuration is not a JSON object");
  }
  absl::Status status;
  std::set<std::string> known;
  VisitFields(config, [&](const std::string& key, auto* field) {
    known.insert(key);
    const auto found = parsed.find(key);
    if (status.ok() && found != parsed.end()) status = Assign(key, *found, field);
  });
  LTX_RETURN_IF_ERROR(status);
  for (const auto& item : parsed.items()) {
    if (known.count(item.key()) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("unknown configuration key \"", item.key(),
                                                     "\"; known are ", absl::StrJoin(known, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyConfigFile(const std::string& path, ServerConfig* config) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read the configuration file ", path));
  const absl::Status status = ApplyConfigJson(content.str(), config);
  if (status.ok()) return absl::OkStatus();
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status ValidateConfig(const ServerConfig& config) {
  LTX_RETURN_IF_ERROR(CheckListen("listen", config.listen));
  if (!config.metrics_listen.empty()) {
    LTX_RETURN_IF_ERROR(CheckListen("metrics_listen", config.metrics_listen));
  }
  if (config.model.empty()) return absl::InvalidArgumentError("model is empty");
  if (config.threads < 0 || config.threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads ", config.threads, " is not in 0..1024"));
  }
  if (config.queue_capacity < 1 || config.queue_capacity > 100000) {
    return absl::InvalidArgumentError(
        absl::StrCat("queue_capacity ", config.queue_capacity, " is not in 1..100000"));
  }
  if (config.prompt_cache_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_cache_bytes ", config.prompt_cache_bytes, " is negative"));
  }
  if (config.fused_cache_bytes < -1) {
    return absl::InvalidArgumentError(absl::StrCat("fused_cache_bytes ", config.fused_cache_bytes,
                                                   " is neither -1 nor a number of bytes"));
  }
  LTX_RETURN_IF_ERROR(ValidateConditions(config.condition));
  LTX_RETURN_IF_ERROR(ValidateSecurity(config));
  LTX_RETURN_IF_ERROR(ValidateJobs(config));
  LTX_RETURN_IF_ERROR(ValidateGovernor(config));
  if (!std::isfinite(config.drain_seconds) || config.drain_seconds < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("drain_seconds ", config.drain_seconds, " is negative or not finite"));
  }
  LTX_RETURN_IF_ERROR(RequireOneOf("compute_dtype", config.compute_dtype, {"auto", "f32", "bf16"}));
  LTX_RETURN_IF_ERROR(
      RequireOneOf("log_level", config.log_level, {"trace", "debug", "info", "warn", "error"}));
  return RequireOneOf("log_format", config.log_format, {"text", "json"});
}

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  // Twice: the first pass finds --config, the second lets the flags win over the file.
  CommandLine result;
  for (int pass = 0; pass < 2; ++pass) {
    std::string config_file;
    CLI::App app("Serves LTX-2.x: text to video with sound, over gRPC.", "ltx_server");
    app.option_defaults()->always_capture_default();
    app.set_version_flag("--version", std::string(kVersion));
    DeclareFlags(&result.config, &config_file, &app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      result.print_and_exit = app.help();
      return result;
    } catch (const CLI::CallForVersion&) {
      result.print_and_exit = absl::StrCat("ltx_server ", kVersion, "\n");
      return result;
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(absl::StrCat(error.what(), " (see ltx_server --help)"));
    }
    if (pass == 0) {
      result.config = ServerConfig();
      if (!config_file.empty()) LTX_RETURN_IF_ERROR(ApplyConfigFile(config_file, &result.config));
    }
  }
  LTX_RETURN_IF_ERROR(ValidateConfig(result.config));
  return result;
}

}  // namespace ltx::server
