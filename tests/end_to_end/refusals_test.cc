#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "client/video_client.h"
#include "engine/checkpoint/test_files.h"
#include "server/loopback_services.h"
#include "server/model_backend.h"
#include "tests/end_to_end/background_job.h"
#include "tests/end_to_end/limit.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/subprocess.h"
#include "tests/end_to_end/wire_calls.h"

namespace ltx::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;

constexpr char kDocument[] = "docs/errors.md";
/// Where the code has its reasons.
constexpr const char* kHeaders[] = {"engine/media/media_errors.h",
                                    "engine/pipeline/error_details.h", "server/reasons.h"};

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What errors.md says of a reason.
struct Documented {
  std::set<std::string> codes;
  /// Besides ErrorInfo; empty for reasons that no call ends with.
  std::set<std::string> details;
  bool ends_calls = false;
};

std::set<std::string> Words(absl::string_view cell) {
  std::set<std::string> words;
  for (const absl::string_view word : absl::StrSplit(cell, ',', absl::SkipWhitespace())) {
    words.insert(std::string(absl::StripAsciiWhitespace(word)));
  }
  return words;
}

/// Rows of tables whose first cell is a list of reasons: | reasons | codes | details | meaning |,
/// or | reasons | meaning | of what no call ends with.
std::map<std::string, Documented> ReadDocument() {
  static const std::regex kReasons("[A-Z][A-Z_, ]+[A-Z]");
  std::map<std::string, Documented> document;
  for (const absl::string_view line : absl::StrSplit(Slurp(kDocument), '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() < 4) continue;
    const std::string first(absl::StripAsciiWhitespace(cells[1]));
    if (!std::regex_match(first, kReasons)) continue;
    for (const std::string& reason : Words(first)) {
      Documented& row = document[reason];
      if (cells.size() < 6) continue;
      row.ends_calls = true;
      row.codes.merge(Words(cells[2]));
      row.details.merge(Words(cells[3]));
    }
  }
  return document;
}

std::set<std::string> ReasonsOfTheCode() {
  static const std::regex kConstant("kReason\\w+\\s*=\\s*\"([A-Z_]+)\"");
  std::set<std::string> reasons;
  for (const char* const header : kHeaders) {
    const std::string text = Slurp(header);
    for (std::sregex_iterator match(text.begin(), text.end(), kConstant), end; match != end;
         ++match) {
      reasons.insert((*match)[1]);
    }
  }
  return reasons;
}

/// One call that ends with a reason.
struct Provocation {
  std::string reason;
  WireError error;
};
using Provocations = std::vector<Provocation>;

/// The services over an engine that does what a prompt says.
class FakeServices {
 public:
  explicit FakeServices(const std::function<void(server::LoopbackServices::Options*)>& set =
                            [](server::LoopbackServices::Options*) {}) {
    const auto failing = [](absl::Status status) {
      server::FakeGeneration::Options work;
      work.run = [status = std::move(status)](int) { return status; };
      return work;
    };
    engine_.Set("no memory", failing(absl::ResourceExhaustedError("cpu: no memory for 8 bytes")));
    server::FakeGeneration::Options held;
    held.run = [this](int) {
      release_.WaitForNotification();
      return absl::OkStatus();
    };
    engine_.Set("held", held);
    server::FakeGeneration::Options large;
    large.clip_bytes = 1000;
    engine_.Set("large", large);
    server::FakeGeneration::Options slow;
    slow.expected_seconds = 1e6;
    engine_.Set("slow", slow);
    server::LoopbackServices::Options options;
    options.jobs.scratch_dir = MakeFolder();
    // Of two clips of 100 bytes the older one has to go.
    options.jobs.artifact_quota_bytes = 150;
    options.hooks.admit = server::AdmitByDeadline;
    set(&options);
    services_ = server::LoopbackServices::Start(options, &engine_).value();
    client_ = client::VideoClient::Connect(address(), kLimit).value();
  }
  ~FakeServices() { release_.Notify(); }

  std::string address() const { return services_->address(); }
  server::JobManager& jobs() { return services_->jobs(); }
  static v1::GenerateVideoRequest Request(const std::string& prompt) {
    v1::GenerateVideoRequest request;
    request.set_prompt(prompt);
    return request;
  }
  WireError Generate(const v1::GenerateVideoRequest& request) {
    return CallGenerate(address(), request).error;
  }
  WireError Generate(const std::string& prompt) { return Generate(Request(prompt)); }
  /// A job that goes on by itself.
  std::string Submit(const std::string& prompt) {
    return client_->Submit(Request(prompt), kLimit).value();
  }
  void AwaitRunning(const std::string& id) {
    while (client_->GetJob(id).value().state() == v1::JOB_STATE_QUEUED) {
    }
  }

 private:
  absl::Notification release_;
  server::FakeEngine engine_;
  std::unique_ptr<server::LoopbackServices> services_;
  std::unique_ptr<client::VideoClient> client_;
};

Provocations OfJobs() {
  Provocations all;
  {
    FakeServices services([](auto* options) { options->jobs.scheduler.capacity = 1; });
    all.push_back({"JOB_UNKNOWN", CallGetJob(services.address(), "nobody")});
    all.push_back({"DEVICE_OOM", services.Generate("no memory")});
    all.push_back({"ARTIFACT_QUOTA", services.Generate("large")});
    all.push_back({"DEADLINE_CANNOT_BE_MET", services.Generate("slow")});
    v1::GenerateVideoRequest request = FakeServices::Request("first");
    request.set_request_id("key");
    v1::WatchJobRequest watch;
    watch.set_job_id(CallGenerate(services.address(), request).events[0].queued().job_id());
    request.set_prompt("second");
    all.push_back({"REQUEST_ID_REUSED", services.Generate(request)});
    EXPECT_EQ(services.Generate("third").code, absl::StatusCode::kOk);
    all.push_back({"ARTIFACT_GONE", CallWatch(services.address(), watch).error});
    services.AwaitRunning(services.Submit("held"));
    request = FakeServices::Request("impatient");
    request.set_queue_timeout_seconds(0.01);
    all.push_back({"QUEUE_TIMEOUT", services.Generate(request)});
    services.Submit("waiting");
    all.push_back({"QUEUE_FULL", services.Generate("one more")});
  }
  {
    FakeServices services([](auto* options) { options->jobs.tenant_max_jobs = 1; });
    EXPECT_EQ(services.Generate("first").code, absl::StatusCode::kOk);
    services.Submit("held");
    all.push_back({"TENANT_QUOTA", services.Generate("one more")});
  }
  {
    FakeServices services;
    services.jobs().Drain(absl::ZeroDuration());
    all.push_back({"DRAINING", services.Generate("late")});
  }
  {
    const std::string killed = MakeFolder() + "/state";
    v1::WatchJobRequest watch;
    {
      const std::string folder = MakeFolder();
      FakeServices services([&](auto* options) { options->jobs.state_dir = folder; });
      watch.set_job_id(services.Submit("held"));
      // What a kill leaves.
      std::filesystem::copy(folder, killed, std::filesystem::copy_options::recursive);
    }
    FakeServices services([&](auto* options) { options->jobs.state_dir = killed; });
    all.push_back({"LOST", CallWatch(services.address(), watch).error});
  }
  return all;
}

Provocations OfUploadsAndCallers() {
  Provocations all;
  {
    FakeServices services([](auto* options) { options->store.max_upload_bytes = 100; });
    const std::string& address = services.address();
    all.push_back({"MEDIA_FORMAT", CallUpload(address, {}, "no picture")});
    v1::ConditionHeader header;
    header.set_total_bytes(101);
    all.push_back({"MEDIA_LIMIT", CallUpload(address, header, "x")});
    all.push_back({"CONDITION_UPLOAD", CallCondition(address)});
    v1::GenerateVideoRequest request;
    request.set_prompt_handle("prompt:none");
    all.push_back({"CONDITION_NOT_FOUND", services.Generate(request)});
  }
  {
    FakeServices services([](auto* options) { options->store.max_uploads = 0; });
    all.push_back({"CONDITION_STORE_FULL", CallUpload(services.address(), {}, "x")});
  }
  const std::string tokens = MakeFolder() + "/tokens";
  checkpoint::WriteTestFile(tokens, "studio a-token-of-the-studio\n");
  std::filesystem::permissions(tokens, std::filesystem::perms::owner_read);
  FakeServices services([&](auto* options) { options->authentication.token_file = tokens; });
  const auto call = [&](const std::map<std::string, std::string>& metadata) {
    return CallGetJob(services.address(), "nobody", metadata);
  };
  const std::string bearer = "Bearer a-token-of-the-studio";
  all.push_back({"TOKEN_MISSING", call({})});
  all.push_back({"TOKEN_UNKNOWN", call({{"authorization", "Bearer a-token-of-nobody"}})});
  all.push_back(
      {"TENANT_MISMATCH", call({{"authorization", bearer}, {"x-ltx-tenant", "another"}})});
  return all;
}

/// Of requests, by the server program with ltx-tiny.
Provocations OfRequests() {
  const std::string config = MakeFolder() + "/config.json";
  checkpoint::WriteTestFile(
      config, R"({"rungs": [{"name": "only", "width": 128, "height": 128, "num_frames": 25}]})");
  const auto server = ServerProcess::Start({"--config", config, "--output-root", MakeFolder()});
  EXPECT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  Provocations all;
  const auto add = [&](const std::string& reason,
                       const std::function<void(v1::GenerateVideoRequest*)>& spoil) {
    v1::GenerateVideoRequest request = SmallRequest(1);
    spoil(&request);
    all.push_back({reason, CallGenerate(address, request).error});
  };
  // Before anything is measured: the job is stopped after its first unit. Then it is refused.
  add("TIME_PROJECTION_EXCEEDS_LEASE", [](auto* r) { r->set_max_seconds(1e-6); });
  for (int clip = 0; clip < 2; ++clip) {
    EXPECT_EQ(CallGenerate(address, SmallRequest(1)).error.code, absl::StatusCode::kOk);
  }
  add("TIME_PROJECTION_EXCEEDS_LEASE", [](auto* r) { r->set_max_seconds(1e-6); });
  add("MEMORY_PROJECTION_EXCEEDS_BUDGET", [](auto* r) { r->set_max_bytes(1000); });
  add("LEASE", [](auto* r) { r->set_max_seconds(-1); });
  add("RUNG_EXCEEDED", [](auto* r) { r->set_num_frames(49); });
  add("FRAME_GRID", [](auto* r) { r->set_num_frames(20); });
  add("FRAME_LIMIT", [](auto* r) { r->set_num_frames(120); });
  add("SIZE_GRID", [](auto* r) { r->set_width(160); });
  add("SIZE_LIMIT", [](auto* r) { r->set_height(-64); });
  add("FRAME_RATE", [](auto* r) { r->set_frame_rate(0); });
  add("PROMPT_LENGTH", [](auto* r) { r->set_prompt(std::string(20000, 'a')); });
  add("UNSUPPORTED_FIELD_FOR_MODE", [](auto* r) { r->set_negative_prompt("blur"); });
  add("UNKNOWN_VALUE", [](auto* r) { r->set_recipe("fast"); });
  add("OUTPUT_PATH", [](auto* r) { r->set_output_path("/etc/clip.mp4"); });
  v1::ConditionHeader prompt;
  prompt.set_kind(v1::CONDITION_KIND_PROMPT);
  all.push_back({"PROMPT_ENCODING", CallUpload(address, prompt, "\xff")});
  return all;
}

/// What only a model that is not as it should be brings about.
Provocations OfModels() {
  constexpr char kVideoVae[] = "/vae/ltx-tiny-video-vae-conv-bf16.safetensors";
  constexpr char kTransformer[] =
      "/diffusion_models/ltx-tiny-distilled-transformer-bf16.safetensors";
  Provocations all;
  v1::GenerateVideoRequest request = SmallRequest(1);
  request.set_recipe("distilled_one_stage");
  {
    // Its decoder makes the same grey of everything.
    const std::string model = LargeModel();
    checkpoint::SafetensorsWriter file = checkpoint::SafetensorsWriter::Copy(model + kVideoVae);
    file.Reshape("decoder.conv_out.conv.weight", {48, 12, 3, 3, 3})
        .Reshape("decoder.conv_out.conv.bias", {48})
        .WriteTo(model + kVideoVae);
    std::filesystem::remove_all(model + "/latent_upscale_models");
    const auto server = ServerProcess::StartModel(model);
    EXPECT_TRUE(server.ok()) << server.status();
    all.push_back({"DEGENERATE_OUTPUT", CallGenerate((*server)->address(), request).error});
    v1::GenerateVideoRequest two_stages = SmallRequest(1);
    two_stages.set_recipe("distilled");
    all.push_back({"COMPONENT_MISSING", CallGenerate((*server)->address(), two_stages).error});
  }
  {
    const std::string model = LargeModel();
    std::filesystem::remove(model + "/model.json");
    checkpoint::WriteTestFile(model + "/model.json", R"({"kind": "dev"})");
    const auto server = ServerProcess::StartModel(model);
    EXPECT_TRUE(server.ok()) << server.status();
    all.push_back({"MODEL_KIND_MISMATCH", CallGenerate((*server)->address(), request).error});
  }
  {
    const std::string model = LargeModel();
    checkpoint::SafetensorsWriter file = checkpoint::SafetensorsWriter::Copy(model + kTransformer);
    file.BFloat16s("model.diffusion_model.proj_out.bias", {128},
                   std::vector<float>(128, std::numeric_limits<float>::quiet_NaN()))
        .WriteTo(model + kTransformer);
    const auto server = ServerProcess::StartModel(model);
    EXPECT_TRUE(server.ok()) << server.status();
    all.push_back({"NONFINITE_OUTPUT", CallGenerate((*server)->address(), request).error});
  }
  return all;
}

std::set<std::string> Keys(const std::map<std::string, Documented>& document) {
  std::set<std::string> keys;
  for (const auto& [reason, row] : document) keys.insert(reason);
  return keys;
}

TEST(RefusalsTest, TheDocumentAndTheCodeHaveTheSameReasons) {
  EXPECT_THAT(Keys(ReadDocument()), ElementsAreArray(ReasonsOfTheCode()));
}

/// Every reason that a call can end with is provoked, and arrives as errors.md tells it.
TEST(RefusalsTest, EveryReasonArrivesWithItsDetails) {
  const std::map<std::string, Documented> document = ReadDocument();
  std::set<std::string> seen;
  for (const Provocations& some : {OfRequests(), OfModels(), OfJobs(), OfUploadsAndCallers()}) {
    for (const auto& [reason, error] : some) {
      SCOPED_TRACE(reason);
      seen.insert(reason);
      EXPECT_EQ(error.reason, reason) << error.message;
      EXPECT_EQ(error.domain, "ltx-server");
      ASSERT_EQ(document.count(reason), 1u);
      const Documented& row = document.at(reason);
      EXPECT_THAT(row.codes, Contains(absl::StatusCodeToString(error.code)));
      EXPECT_THAT(error.details, ElementsAreArray(row.details));
      // For people, and short enough for a header.
      EXPECT_GT(error.message.size(), 10u);
      EXPECT_LE(error.message.size(), 1027u);
      if (error.details.count("BadRequest") > 0) {
        EXPECT_NE(error.field, "");
        EXPECT_EQ(error.description, error.message);
      }
      if (error.details.count("QuotaFailure") > 0) {
        EXPECT_NE(error.quota_subject, "");
      }
      if (error.details.count("RetryInfo") > 0) {
        EXPECT_GT(error.retry_seconds, 0);
      }
      if (error.details.count("ResourceInfo") > 0) {
        EXPECT_NE(error.resource_name, "");
      }
    }
  }
  std::set<std::string> expected;
  for (const auto& [reason, row] : document) {
    if (row.ends_calls) expected.insert(reason);
  }
  EXPECT_THAT(seen, ElementsAreArray(expected));
}

}  // namespace
}  // namespace ltx::testing
