/// Does guidance help? The captions of the adherence test with the guided one-stage recipe, once
/// for each setting of its guidance, scored and put beside each other.
///
///     guidance_comparison [--captions=N] [--steps=N] [--sheet=FILE.png] [SETTING...]
///
/// A setting is NAME or NAME:VIDEO_CFG,AUDIO_CFG,STG,MODALITY; without any: unguided, cfg, full,
/// the last two with the recipe's own scales. Prints a line a clip and, for docs/adherence.md, a
/// table. Run it from the folder above models/.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/adherence/captions.h"
#include "tests/adherence/clip_maker.h"
#include "tests/adherence/contact_sheet.h"

namespace ltx::adherence {
namespace {

/// Captions on the sheet, and frames of each clip.
constexpr int kCaptionsShown = 6;
constexpr int kFramesShown = 2;

struct Setting {
  std::string name;
  /// Unset: the recipe's own.
  std::optional<double> video_cfg, audio_cfg, stg, modality;
};

struct Arguments {
  int captions = static_cast<int>(Captions().size());
  std::optional<int64_t> steps;
  std::string sheet;
  std::vector<Setting> settings;
};

std::optional<Setting> ParseSetting(absl::string_view text) {
  if (text == "unguided") return Setting{"unguided", 1.0, 1.0, 0.0, 1.0};
  if (text == "cfg") return Setting{"cfg", std::nullopt, std::nullopt, 0.0, 1.0};
  if (text == "full")
    return Setting{"full", std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<std::string> scales = absl::StrSplit(parts.back(), ',');
  Setting setting{parts.front(), {}, {}, {}, {}};
  std::optional<double>* const fields[] = {&setting.video_cfg, &setting.audio_cfg, &setting.stg,
                                           &setting.modality};
  if (parts.size() != 2 || scales.size() != std::size(fields)) return std::nullopt;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!absl::SimpleAtod(scales[i], &fields[i]->emplace())) return std::nullopt;
  }
  return setting;
}

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--captions=")) {
      if (!absl::SimpleAtoi(argument, &arguments.captions) || arguments.captions < 1 ||
          arguments.captions > static_cast<int>(Captions().size())) {
        return std::nullopt;
      }
    } else if (absl::ConsumePrefix(&argument, "--steps=")) {
      if (!absl::SimpleAtoi(argument, &arguments.steps.emplace())) return std::nullopt;
    } else if (absl::ConsumePrefix(&argument, "--sheet=")) {
      arguments.sheet = std::string(argument);
    } else {
      const std::optional<Setting> setting = ParseSetting(argument);
      if (!setting.has_value()) return std::nullopt;
      arguments.settings.push_back(*setting);
    }
  }
  if (arguments.settings.empty()) {
    for (const char* name : {"unguided", "cfg", "full"}) {
      arguments.settings.push_back(*ParseSetting(name));
    }
  }
  return arguments;
}

void Apply(const Setting& setting, pipeline::GenerationRequest* request) {
  for (const sampling::Modality m : sampling::kModalities) {
    pipeline::GuidanceFields& fields = request->guidance[m];
    fields.cfg_scale = m == sampling::Modality::kVideo ? setting.video_cfg : setting.audio_cfg;
    fields.stg_scale = setting.stg;
    fields.modality_scale = setting.modality;
  }
}

/// Sums over the clips of one setting.
struct Totals {
  int colours = 0, backgrounds = 0, motions = 0, sounds = 0, clips = 0;
  double colour_error = 0, background_error = 0, edge_width = 0, passes = 0;
  int pitches = 0;
  double pitch_error = 0;

  void Add(const Caption& caption, const ScoredClip& clip) {
    const Adherence adherence = Judge(caption, clip.score);
    ++clips;
    colours += adherence.colour;
    backgrounds += adherence.background;
    motions += adherence.motion;
    sounds += adherence.sound;
    colour_error += Distance(clip.score.object_rgb, ObjectColour(caption.colour));
    background_error += Distance(clip.score.background_rgb, BackgroundColour(caption.background));
    edge_width += clip.score.edge_width;
    passes += clip.passes;
    if (caption.sound == Sound::kPitch) {
      ++pitches;
      pitch_error += std::abs(clip.score.pitch - caption.pitch);
    }
  }
};

absl::Status Run(const Arguments& arguments) {
  absl::StatusOr<ClipMaker> maker = ClipMaker::Create();
  if (!maker.ok()) return maker.status();
  pipeline::GenerationRequest request = maker->model().defaults().For(pipeline::Recipe::kOneStage);
  request.num_inference_steps = arguments.steps;
  const int shown = std::min(arguments.captions, kCaptionsShown);
  const int settings = static_cast<int>(arguments.settings.size());
  ContactSheet sheet(shown, settings * kFramesShown, static_cast<int>(request.height),
                     static_cast<int>(request.width));
  std::vector<Totals> totals(settings);
  for (int i = 0; i < arguments.captions; ++i) {
    const Caption& caption = Captions()[i];
    request.prompt = caption.Text();
    request.seed = caption.seed;
    for (int s = 0; s < settings; ++s) {
      Apply(arguments.settings[s], &request);
      const absl::StatusOr<ScoredClip> clip = maker->Make(request);
      if (!clip.ok()) return clip.status();
      totals[s].Add(caption, *clip);
      const ClipScore& score = clip->score;
      std::printf("%2d %-12s %-95s %s, %s, %s, %.0f Hz, edges %.2f px%s\n", i,
                  arguments.settings[s].name.c_str(), request.prompt.c_str(), score.colour.c_str(),
                  score.background.c_str(), score.motion.c_str(), score.pitch, score.edge_width,
                  Judge(caption, score).all() ? "" : "  <-- does not fit");
      std::fflush(stdout);
      // The first frames show the least of a motion: a third and the last.
      for (int f = 0; f < kFramesShown && i < shown; ++f) {
        sheet.Put(i, s * kFramesShown + f,
                  clip->Frame(f == 0 ? clip->num_frames / 3 : clip->num_frames - 1));
      }
    }
  }
  std::printf(
      "\n| guidance | colour | background | motion | sound | colour off by | background off by | "
      "pitch off by | edges | passes |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (int s = 0; s < settings; ++s) {
    const Totals& t = totals[s];
    std::printf("| %s | %d | %d | %d | %d | %.1f | %.1f | %.1f Hz | %.2f px | %.0f |\n",
                arguments.settings[s].name.c_str(), t.colours, t.backgrounds, t.motions, t.sounds,
                t.colour_error / t.clips, t.background_error / t.clips,
                t.pitches > 0 ? t.pitch_error / t.pitches : 0, t.edge_width / t.clips,
                t.passes / t.clips);
  }
  return arguments.sheet.empty() ? absl::OkStatus() : sheet.Write(arguments.sheet);
}

}  // namespace
}  // namespace ltx::adherence

int main(int argc, char** argv) {
  const auto arguments = ltx::adherence::Parse(argc, argv);
  if (!arguments.has_value()) {
    std::fprintf(stderr,
                 "usage: guidance_comparison [--captions=N] [--steps=N] [--sheet=FILE.png] "
                 "[NAME[:VIDEO_CFG,AUDIO_CFG,STG,MODALITY]...]\n");
    return 2;
  }
  const absl::Status status = ltx::adherence::Run(*arguments);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
