#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/clip_report.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/failure.h"
#include "client/interrupt_watcher.h"
#include "client/json_output.h"
#include "client/plan_table.h"
#include "client/progress_line.h"
#include "client/prompt_list.h"
#include "client/recipe_help.h"
#include "client/video_client.h"
#include "engine/pipeline/recipe.h"

namespace ltx::client {
namespace {

/// How long a server may take to write a job down.
constexpr absl::Duration kSubmitTimeout = absl::Seconds(10);

/// What the flags say. Unset ones are left to the server.
struct Flags {
  Connection connection;
  std::string output;
  std::vector<std::string> prompts;
  std::string prompts_file;
  std::vector<std::string> conditions;
  std::string preview_dir;
  int preview_every = 1;
  std::string noise_generator;
  std::string noise_dtype;
  double deadline_seconds = 0;
  bool quiet = false;
  bool json = false;
  bool table = false;
  bool detach = false;
  std::string job_class;
  std::string tenant;
  v1::GenerateVideoRequest request;
};

/// Tells the job's id and leaves it to the server.
int RunDetached(const Flags& flags, const v1::GenerateVideoRequest& request, VideoClient* client) {
  const absl::Duration timeout =
      flags.deadline_seconds > 0 ? absl::Seconds(flags.deadline_seconds) : kSubmitTimeout;
  const auto job_id = client->Submit(request, timeout);
  if (!job_id.ok()) return Fail(job_id.status());
  if (!flags.json) {
    std::printf("%s\n", job_id->c_str());
    return 0;
  }
  const auto job = client->GetJob(*job_id);
  if (!job.ok()) return Fail(job.status());
  PrintJson(*job);
  return 0;
}

/// DIR/stage1-step03.png.
absl::Status WritePreview(const std::string& folder, const v1::Preview& preview) {
  const std::string path =
      absl::StrFormat("%s/stage%d-step%02d.png", folder,
                      preview.phase() == v1::PHASE_STAGE_2 ? 2 : 1, preview.unit());
  std::ofstream file(path, std::ios::binary);
  file << preview.png();
  file.close();
  if (file) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("cannot write ", path));
}

/// "clip.mp4" and 2 make "clip-2.mp4"; an empty path stays empty.
std::string NumberedPath(const std::string& path, size_t number) {
  if (path.empty()) return path;
  const std::filesystem::path parts(path);
  return (parts.parent_path() /
          absl::StrCat(parts.stem().string(), "-", number, parts.extension().string()))
      .string();
}

struct Clip {
  v1::GenerateVideoRequest request;
  std::string output;
};

/// One job a prompt, so that each clip is queued, reported and given up on its own. Outputs and the
/// request's key are numbered if there are several.
std::vector<Clip> ClipsOf(const Flags& flags) {
  if (flags.prompts.empty()) return {{flags.request, flags.output}};
  std::vector<Clip> clips;
  for (const std::string& prompt : flags.prompts) {
    Clip clip = {flags.request, flags.output};
    clip.request.set_prompt(prompt);
    if (flags.prompts.size() > 1) {
      const size_t number = clips.size() + 1;
      clip.output = NumberedPath(flags.output, number);
      clip.request.set_output_path(NumberedPath(flags.request.output_path(), number));
      if (!flags.request.request_id().empty()) {
        clip.request.set_request_id(absl::StrCat(flags.request.request_id(), "-", number));
      }
    }
    clips.push_back(std::move(clip));
  }
  return clips;
}

int RunGenerate(const Flags& flags) {
  // Before the watcher, which may use it until its own end.
  absl::StatusOr<std::unique_ptr<VideoClient>> client;
  InterruptWatcher interrupts;
  client = Connect(flags.connection);
  if (!client.ok()) return Fail(client.status());
  interrupts.Watch(client->get());
  (*client)->SetTenant(flags.tenant);
  ProgressDisplay display(stderr, isatty(STDERR_FILENO) == 1);
  VideoClient::GenerateOptions options;
  absl::Status previews;
  options.on_event = [&](const v1::GenerateVideoEvent& event) {
    if (!flags.quiet) display.Show(event);
    if (event.has_preview()) previews.Update(WritePreview(flags.preview_dir, event.preview()));
  };
  if (flags.deadline_seconds > 0) {
    options.deadline = absl::Now() + absl::Seconds(flags.deadline_seconds);
  }
  for (const Clip& clip : ClipsOf(flags)) {
    if (flags.detach) {
      const int exit_status = RunDetached(flags, clip.request, client->get());
      if (exit_status != 0) return exit_status;
      continue;
    }
    const auto report = (*client)->Generate(clip.request, clip.output, options);
    display.Clear();
    if (!report.ok()) return Fail(report.status());
    if (!previews.ok()) return Fail(previews);
    if (flags.json) {
      PrintJson(*report);
    } else {
      PrintReport(*report, report->output_path().empty() ? clip.output : report->output_path());
    }
  }
  return 0;
}

/// An option that calls `set` with its value, so that absence stays absence on the wire.
template <typename T, typename Setter>
CLI::Option* Optional(CLI::App* app, const std::string& name, Setter set, const std::string& help) {
  return app->add_option_function<T>(
      name, [set](const T& value) { set(value); }, help);
}

void AddSizeFlags(CLI::App* app, v1::GenerateVideoRequest* request) {
  Optional<int32_t>(
      app, "--width", [request](int32_t v) { request->set_width(v); },
      "Pixels; default: the model's own");
  Optional<int32_t>(
      app, "--height", [request](int32_t v) { request->set_height(v); },
      "Pixels; default: the model's own");
  Optional<int32_t>(
      app, "--num-frames", [request](int32_t v) { request->set_num_frames(v); },
      "8k + 1; default: the model's own");
  app->add_option_function<std::vector<double>>(
         "--auto-duration",
         [request](const std::vector<double>& bounds) {
           v1::AutoDuration* duration = request->mutable_auto_duration();
           duration->set_min_seconds(bounds[0]);
           duration->set_max_seconds(bounds[1]);
         },
         "Instead of --num-frames: let the duration head choose, between MIN and MAX seconds")
      ->expected(2)
      ->type_name("MIN MAX");
  app->add_flag_callback(
      "--video-only", [request] { request->set_video_only(true); }, "Leave out the sound");
  Optional<double>(
      app, "--frame-rate", [request](double v) { request->set_frame_rate(v); },
      "Frames per second; default: the model's own");
  Optional<int64_t>(
      app, "--seed", [request](int64_t v) { request->set_seed(v); },
      "Default: 10, as in the reference");
}

/// The flags of one modality's guidance, in the words of the reference's command line.
struct ModalityFlags {
  std::string name, what, modality_flag, modality_help;
  void (v1::GenerateVideoRequest::*set_cfg)(double);
  void (v1::GenerateVideoRequest::*set_stg)(double);
  void (v1::GenerateVideoRequest::*set_rescale)(double);
  void (v1::GenerateVideoRequest::*set_modality)(double);
  void (v1::GenerateVideoRequest::*set_skip_step)(int32_t);
  void (v1::GenerateVideoRequest::*add_stg_block)(int32_t);
};

void AddModalityFlags(CLI::App* app, v1::GenerateVideoRequest* request,
                      const ModalityFlags& flags) {
  const std::string prefix = "--" + flags.name + "-";
  const auto scale = [&](const std::string& name, const std::string& help, auto set) {
    Optional<double>(
        app, name, [request, set](double v) { (request->*set)(v); }, help);
  };
  scale(prefix + "cfg-guidance-scale",
        "Classifier-free guidance: how far " + flags.what +
            " is pushed from the negative prompt towards the prompt; 1: off",
        flags.set_cfg);
  scale(prefix + "stg-guidance-scale",
        "Spatio-temporal guidance: how far it is pushed from what perturbed blocks make; 0: off",
        flags.set_stg);
  Optional<std::vector<int32_t>>(
      app, prefix + "stg-blocks",
      [request, add = flags.add_stg_block](const std::vector<int32_t>& blocks) {
        for (const int32_t block : blocks) (request->*add)(block);
      },
      "Blocks whose self-attention the perturbed pass skips, counted from 0");
  scale(prefix + "rescale-scale",
        "How much of the contrast that guidance adds is taken back, 0 to 1", flags.set_rescale);
  scale(flags.modality_flag, flags.modality_help, flags.set_modality);
  Optional<int32_t>(
      app, prefix + "skip-step",
      [request, set = flags.set_skip_step](int32_t v) { (request->*set)(v); },
      "N: only every (N + 1)-th step is evaluated for it, the others keep the last prediction");
}

void AddGuidanceFlags(CLI::App* app, v1::GenerateVideoRequest* request) {
  using Request = v1::GenerateVideoRequest;
  Optional<std::string>(
      app, "--negative-prompt",
      [request](const std::string& v) { request->set_negative_prompt(v); },
      "What guidance steers away from; default: a list of common faults");
  Optional<int32_t>(
      app, "--num-inference-steps", [request](int32_t v) { request->set_num_inference_steps(v); },
      "Denoising steps of a free schedule");
  AddModalityFlags(
      app, request,
      {"video", "the picture", "--a2v-guidance-scale",
       "How far the picture is pushed from what it would be without hearing the sound; 1: off",
       &Request::set_video_cfg_guidance_scale, &Request::set_video_stg_guidance_scale,
       &Request::set_video_rescale_scale, &Request::set_a2v_guidance_scale,
       &Request::set_video_skip_step, &Request::add_video_stg_blocks});
  AddModalityFlags(
      app, request,
      {"audio", "the sound", "--v2a-guidance-scale",
       "How far the sound is pushed from what it would be without seeing the picture; 1: off",
       &Request::set_audio_cfg_guidance_scale, &Request::set_audio_stg_guidance_scale,
       &Request::set_audio_rescale_scale, &Request::set_v2a_guidance_scale,
       &Request::set_audio_skip_step, &Request::add_audio_stg_blocks});
  app->add_option_function<std::string>(
         "--guidance-batching",
         [request](const std::string& v) {
           request->set_guidance_batching(v == "batched"      ? v1::GUIDANCE_BATCHING_BATCHED
                                          : v == "sequential" ? v1::GUIDANCE_BATCHING_SEQUENTIAL
                                                              : v1::GUIDANCE_BATCHING_UNSPECIFIED);
         },
         "auto, batched or sequential: the passes of a step in one forward or one by one")
      ->check(CLI::IsMember({"auto", "batched", "sequential"}));
  Optional<double>(
      app, "--distilled-lora-strength-stage-1",
      [request](double v) { request->set_distilled_lora_strength_stage_1(v); },
      "Strength of the distilled LoRA in the first stage, 0 to 2");
  Optional<double>(
      app, "--distilled-lora-strength-stage-2",
      [request](double v) { request->set_distilled_lora_strength_stage_2(v); },
      "The same in the second stage");
  app->add_flag_callback(
      "--enhance-prompt", [request] { request->set_enhance_prompt(true); },
      "Let the text model rewrite the prompt, where it can");
}

void AddNoiseFlags(CLI::App* app, Flags* flags) {
  app->add_option("--noise-generator", flags->noise_generator,
                  "torch_cpu or torch_cuda; default: that of the server's device")
      ->check(CLI::IsMember({"torch_cpu", "torch_cuda"}));
  app->add_option("--noise-dtype", flags->noise_dtype,
                  "float32 or bfloat16; default: that of the run")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
}

void AddJobFlags(CLI::App* app, Flags* flags) {
  Optional<std::string>(
      app, "--request-id", [flags](const std::string& v) { flags->request.set_request_id(v); },
      "A key of your own: the same request with the same key is one job, however often it is sent");
  app->add_option("--class", flags->job_class,
                  "interactive (default), or batch: gives way to interactive jobs")
      ->check(CLI::IsMember({"interactive", "batch"}));
  Optional<double>(
      app, "--queue-timeout", [flags](double v) { flags->request.set_queue_timeout_seconds(v); },
      "Give up if the job has not started after this many seconds");
  app->add_option("--tenant", flags->tenant, "Who shares the device with whom");
  app->add_flag("--detach", flags->detach,
                "Print the job's id and leave; look at it with ltx jobs");
}

void MapNoiseFlags(Flags* flags) {
  if (flags->noise_generator == "torch_cpu") {
    flags->request.set_noise_generator(v1::NOISE_GENERATOR_TORCH_CPU);
  } else if (flags->noise_generator == "torch_cuda") {
    flags->request.set_noise_generator(v1::NOISE_GENERATOR_TORCH_CUDA);
  }
  if (flags->noise_dtype == "float32") {
    flags->request.set_noise_dtype(v1::NOISE_DTYPE_FLOAT32);
  } else if (flags->noise_dtype == "bfloat16") {
    flags->request.set_noise_dtype(v1::NOISE_DTYPE_BFLOAT16);
  }
}

absl::Status ParseCondition(const std::string& text, v1::ConditionRef* reference) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("--condition \"", text, "\" is not HANDLE,ROLE[,FRAME[,STRENGTH]]"));
  if (parts.size() < 2 || parts.size() > 4) return bad;
  reference->set_handle(parts[0]);
  v1::ConditionRole role;
  const std::string name = "CONDITION_ROLE_" + absl::AsciiStrToUpper(parts[1]);
  if (!v1::ConditionRole_Parse(name, &role)) return bad;
  reference->set_role(role);
  int32_t frame = 0;
  if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &frame)) return bad;
  reference->set_frame_index(frame);
  double strength = 1;
  if (parts.size() > 3 && !absl::SimpleAtod(parts[3], &strength)) return bad;
  if (parts.size() > 3) reference->set_strength(strength);
  return absl::OkStatus();
}

void AddLeaseFlags(CLI::App* app, v1::GenerateVideoRequest* request) {
  Optional<double>(
      app, "--max-seconds", [request](double v) { request->set_max_seconds(v); },
      "Most seconds of device time the job may take; default: what its rung allows");
  Optional<int64_t>(
      app, "--max-bytes", [request](int64_t v) { request->set_max_bytes(v); },
      "Most bytes of device memory it may take, weights included");
  app->add_flag_function(
      "--keep-partial-results", [request](int64_t) { request->set_keep_partial_results(true); },
      "If the lease stops the job: the latents by then, in OUTPUT.partial.safetensors");
}

/// The flags that say what to make; returns the group with the prompt.
CLI::App* AddClipFlags(CLI::App* command, const std::shared_ptr<Flags>& flags) {
  CLI::App* const prompt = command->add_option_group("prompt", "What to generate");
  prompt
      ->add_option("--prompt", flags->prompts,
                   "What to show and to be heard; given several times, one clip for each, numbered "
                   "before the ending of the output")
      ->allow_extra_args(false);
  prompt->add_option("--prompts-file", flags->prompts_file,
                     "File of prompts, one a line: as --prompt for each of them");
  Optional<std::string>(
      prompt, "--prompt-handle",
      [flags](const std::string& v) { flags->request.set_prompt_handle(v); },
      "Handle of an uploaded prompt");
  command->add_option("--condition", flags->conditions,
                      "HANDLE,ROLE[,FRAME[,STRENGTH]] of uploaded material; ROLE is frame, "
                      "reference or source; may be repeated");
  Optional<std::string>(
      command, "--recipe", [flags](const std::string& v) { flags->request.set_recipe(v); },
      "How the clip is made: " + pipeline::RecipeNames() + "; with --help: what it does and takes");
  AddSizeFlags(command, &flags->request);
  AddNoiseFlags(command, flags.get());
  AddGuidanceFlags(command, &flags->request);
  AddLeaseFlags(command, &flags->request);
  command->add_option("--deadline", flags->deadline_seconds,
                      "Give up after this many seconds; 0: never");
  return prompt;
}

/// Brings what flags hold besides into the request.
absl::Status FinishRequest(Flags* flags) {
  if (!flags->prompts_file.empty()) {
    absl::StatusOr<std::vector<std::string>> prompts = ReadPromptList(flags->prompts_file);
    if (!prompts.ok()) return prompts.status();
    flags->prompts = *std::move(prompts);
  }
  for (const std::string& text : flags->conditions) {
    const absl::Status status = ParseCondition(text, flags->request.add_conditions());
    if (!status.ok()) return status;
  }
  MapNoiseFlags(flags);
  return absl::OkStatus();
}

int RunPlan(const Flags& flags) {
  const auto client = Connect(flags.connection);
  if (!client.ok()) return Fail(client.status());
  if (flags.table) {
    const auto rungs = (*client)->Rungs(flags.request);
    if (!rungs.ok()) return Fail(rungs.status());
    if (flags.json) PrintJson(*rungs);
    if (!flags.json) std::fputs(RungsText(*rungs).c_str(), stdout);
    return 0;
  }
  const absl::Time deadline = flags.deadline_seconds > 0
                                  ? absl::Now() + absl::Seconds(flags.deadline_seconds)
                                  : absl::InfiniteFuture();
  const auto plan = (*client)->Plan(flags.request, deadline);
  if (!plan.ok()) return Fail(plan.status());
  if (flags.json) PrintJson(*plan);
  if (!flags.json) std::fputs(PlanText(*plan).c_str(), stdout);
  return plan->decision() == v1::PlanResponse::DECISION_REFUSE ? 1 : 0;
}

}  // namespace

Command AddGenerateCommand(CLI::App* app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app->add_subcommand("generate", "Generate a clip from a prompt");
  AddConnectionFlags(command, &flags->connection);
  AddClipFlags(command, flags)->require_option(1);
  AddJobFlags(command, flags.get());
  command->add_option("--output", flags->output,
                      "File to write: .mp4, .png for one frame, .wav for sound alone");
  Optional<std::string>(
      command, "--server-output",
      [flags](const std::string& v) { flags->request.set_output_path(v); },
      "Let the server write the file to this path of its own, instead of --output");
  command->add_option("--preview-dir", flags->preview_dir,
                      "Folder for small pictures of what the clip will show, one a denoising step");
  command->add_option("--preview-every", flags->preview_every, "Only after every so many steps")
      ->check(CLI::PositiveNumber);
  command->add_flag("--quiet", flags->quiet, "No progress");
  command->add_flag("--json", flags->json, "Print the whole report as JSON");
  command->footer([flags] { return RecipeHelp(flags->request.recipe()); });
  return [flags] {
    if (flags->detach && !flags->output.empty()) {
      return Fail(absl::InvalidArgumentError(
          "--detach leaves the clip on the server: take --output to ltx jobs download"));
    }
    if (!flags->detach && flags->output.empty() == flags->request.output_path().empty()) {
      return Fail(absl::InvalidArgumentError("give either --output or --server-output"));
    }
    if (flags->job_class == "batch") flags->request.set_job_class(v1::JOB_CLASS_BATCH);
    if (!flags->preview_dir.empty()) {
      flags->request.set_preview_every_steps(flags->preview_every);
    }
    const absl::Status finished = FinishRequest(flags.get());
    return finished.ok() ? RunGenerate(*flags) : Fail(finished);
  };
}

Command AddPlanCommand(CLI::App* app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app->add_subcommand(
      "plan", "Tell what a clip would cost and whether it would be admitted; make nothing");
  AddConnectionFlags(command, &flags->connection);
  // A plan without a prompt is that of an empty one.
  AddClipFlags(command, flags)->require_option(0, 1);
  command->footer([flags] { return RecipeHelp(flags->request.recipe()); });
  command->add_flag("--table", flags->table, "All rungs of the server instead of one size");
  command->add_flag("--json", flags->json, "Print the answer as JSON");
  return [flags] {
    const absl::Status finished = FinishRequest(flags.get());
    if (!finished.ok()) return Fail(finished);
    if (flags->prompts.size() > 1) {
      return Fail(absl::InvalidArgumentError("a plan is of one prompt"));
    }
    if (!flags->prompts.empty()) flags->request.set_prompt(flags->prompts.front());
    return RunPlan(*flags);
  };
}

}  // namespace ltx::client
