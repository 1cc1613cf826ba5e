#ifndef LTX_SERVER_CONFIG_H_
#define LTX_SERVER_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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
  /// Jobs that may wait; one more is refused.
  int queue_capacity = 64;
  /// Folders below which a request may have its file written; none: media are streamed only.
  std::vector<std::string> output_roots;
  /// Scratch for clips on their way to a client; empty: the system's folder for temporary files.
  std::string work_dir;
  /// Seconds that the running job gets to finish after SIGTERM.
  double drain_seconds = 30.0;
  /// HOST:PORT of the HTTP port with /metrics, /healthz and /readyz; empty: none.
  std::string metrics_listen;
  /// Device memory for the encoded forms of the prompts seen last; 0: none are kept.
  int64_t prompt_cache_bytes = int64_t{256} << 20;
  ConditionConfig condition;
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
