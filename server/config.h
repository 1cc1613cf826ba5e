#ifndef LTX_SERVER_CONFIG_H_
#define LTX_SERVER_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/governor/rung_ladder.h"

namespace ltx::server {

/// Bounds of what clients upload to condition on.
struct ConditionConfig {
  /// Host memory for uploads, those under way included, in all and of one tenant.
  int64_t store_bytes = int64_t{1} << 30;
  int64_t tenant_bytes = int64_t{1} << 30;
  /// Of one upload.
  int64_t max_bytes = int64_t{256} << 20;
  /// Width times height of a picture or a frame; frames and seconds of a clip or a sound.
  int64_t max_pixels = int64_t{4096} * 4096;
  int64_t max_frames = 1001;
  double max_seconds = 120;
  /// All frames of a clip as RGB: what decoding it costs.
  int64_t max_decoded_bytes = int64_t{8} << 30;
  /// After the last use.
  double ttl_seconds = 3600;
  /// At a time.
  int max_uploads = 8;
  /// For one upload, decoding included.
  double upload_seconds = 120;
};

/// Everything that can be set from outside. Each field is a flag (--output-root) and a key of the
/// JSON file (output_roots); flags win. docs/configuration.md lists them.
struct ServerConfig {
  /// HOST:PORT; port 0 lets the system choose. Loopback, so that a first start exposes nothing.
  std::string listen = "127.0.0.1:50051";
  /// Folder of the model set.
  std::string model = "models/ltx-tiny";
  /// "auto" (a GPU if there is one), "cpu" or "cuda:N".
  std::string device = "auto";
  /// CPU threads of one operation; 0: one per core.
  int threads = 0;
  /// Dtype of weights and activations: "auto" (f32 on a CPU, bf16 on a GPU), "f32" or "bf16".
  std::string compute_dtype = "auto";
  /// On a GPU: record the transformer's forwards and replay them.
  bool cuda_graphs = true;
  /// Jobs of one class that may wait; one more is refused.
  int queue_capacity = 64;
  /// Seconds that a job may wait for its start; 0: as long as it likes.
  double queue_timeout_seconds = 0;
  /// Seconds of the device that interactive jobs may use while a batch job waits and none of its
  /// class has it; then the next batch job goes like an interactive one. 0: as long as they like.
  /// Ten minutes: a burst of interactive jobs is over by then, and what still comes is a steady
  /// load that would keep batch jobs waiting for ever.
  double batch_ageing_seconds = 600;
  /// Shares of the device by tenant; 1 for those not named.
  std::map<std::string, double> tenant_weights;
  /// Folder for jobs and clips that survive the process; empty: they do not.
  std::string state_dir;
  /// MiB of finished clips to keep.
  int artifact_quota_mib = 4096;
  /// Seconds for which a finished job is remembered; a day.
  double job_ttl_seconds = 86400;
  /// Finished jobs to remember at the most. Without state_dir each clip holds an open file, of
  /// which systems commonly give a process 1024.
  int job_history = 500;
  /// Folders below which a request may have its file written; none: media are streamed only.
  std::vector<std::string> output_roots;
  /// Scratch for clips without a state_dir; empty: the system's folder for temporary files.
  std::string work_dir;
  /// Seconds that the running job gets to finish after SIGTERM.
  double drain_seconds = 30.0;
  /// HOST:PORT of the HTTP port with /metrics, /healthz and /readyz; empty: none.
  std::string metrics_listen;
  /// Device memory for the encoded forms of the prompts seen last; 0: none are kept.
  int64_t prompt_cache_bytes = int64_t{256} << 20;
  /// File with the system prompt for prompt enhancement; empty: requests for it are refused.
  std::string prompt_enhancement_system_prompt_file;
  /// Most device memory for transformers with the distilled LoRA fused in, kept between jobs; -1:
  /// what memory_budget_bytes leaves beside the running job, 0: every job fuses anew.
  int64_t fused_cache_bytes = -1;
  /// Sizes of clips and what one may cost, JSON only; none: a ladder from the model's sizes,
  /// without budgets of its own.
  std::vector<Rung> rungs;
  /// Device memory that this server may use, weights included; 0: nine tenths of what is available
  /// when it starts.
  int64_t memory_budget_bytes = 0;
  /// Most seconds to measure what work costs before the server is ready; 0: projections of time
  /// start with the first requests; -1: 2, and 40 on a GPU, where the first clip of a process alone
  /// takes seconds and a new size a second. Nothing is measured where state_dir has it already.
  double calibration_seconds = -1;
  ConditionConfig condition;
  /// PEM files of the server's certificate chain and key; empty: no TLS.
  std::string tls_cert;
  std::string tls_key;
  /// PEM file of the authorities whose certificates clients must show; empty: none is asked for.
  std::string tls_client_ca;
  /// File of bearer tokens, one "TENANT TOKEN" a line; empty: none is asked for.
  std::string token_file;
  /// Take tokens without TLS on a port that other machines reach, e.g. behind a proxy that ends
  /// TLS.
  bool allow_insecure_token = false;
  /// Jobs of one tenant that may wait and run at a time; 0: as many as the queue takes.
  int tenant_max_jobs = 0;
  /// Largest message that a client may send.
  int max_message_bytes = 4 << 20;
  /// Calls at a time on one connection.
  int max_concurrent_streams = 128;
  /// Server reflection, for tools such as grpcurl.
  bool reflection = true;
  /// "trace", "debug", "info", "warn", "error".
  std::string log_level = "info";
  /// "text" or "json".
  std::string log_format = "text";
};

/// Overwrites the fields that `json_text` names. INVALID_ARGUMENT naming an unknown key, or a key
/// whose value has the wrong type, with what would be legal.
absl::Status ApplyConfigJson(absl::string_view json_text, ServerConfig* config);

/// ApplyConfigJson on a file. NOT_FOUND if it cannot be read.
absl::Status ApplyConfigFile(const std::string& path, ServerConfig* config);

/// Checks values against each other and their ranges; INVALID_ARGUMENT naming field and value.
absl::Status ValidateConfig(const ServerConfig& config);

/// What a command line asks for.
struct CommandLine {
  ServerConfig config;
  /// The text of --help or --version: print it and exit with 0.
  std::string print_and_exit;
};

/// Flags over the file named by --config over the defaults. INVALID_ARGUMENT for unknown flags and
/// bad values.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace ltx::server

#endif  // LTX_SERVER_CONFIG_H_
