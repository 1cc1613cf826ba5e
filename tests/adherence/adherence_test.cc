#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/adherence/captions.h"
#include "tests/adherence/clip_maker.h"
#include "tests/adherence/contact_sheet.h"

namespace ltx::adherence {
namespace {

/// On the sheet: frames of a clip, and clips a row.
constexpr int kFramesShown = 5;
constexpr int kClipsPerRow = 2;

TEST(AdherenceTest, ClipsFitTheirPrompts) {
  const auto maker = ClipMaker::Create();
  ASSERT_TRUE(maker.ok()) << maker.status();

  int colours = 0, backgrounds = 0, motions = 0, sounds = 0;
  const int total = static_cast<int>(Captions().size());
  pipeline::GenerationRequest request = maker->model().DefaultRequest();
  ContactSheet sheet((total + kClipsPerRow - 1) / kClipsPerRow, kClipsPerRow * kFramesShown,
                     static_cast<int>(request.height), static_cast<int>(request.width));
  for (int i = 0; i < total; ++i) {
    const Caption& caption = Captions()[i];
    request.prompt = caption.Text();
    request.seed = caption.seed;
    const auto clip = maker->Make(request);
    ASSERT_TRUE(clip.ok()) << clip.status();
    for (int f = 0; f < kFramesShown; ++f) {
      sheet.Put(i / kClipsPerRow, (i % kClipsPerRow) * kFramesShown + f,
                clip->Frame(f * (clip->num_frames - 1) / (kFramesShown - 1)));
    }
    const ClipScore& score = clip->score;
    const Adherence adherence = Judge(caption, score);
    colours += adherence.colour;
    backgrounds += adherence.background;
    motions += adherence.motion;
    sounds += adherence.sound;
    std::printf(
        "%2d %-95s %s, %s, %s, %.0f Hz (%.0f to %.0f), rms %.4f, crest %.0f, quiet %.2f%s\n", i,
        request.prompt.c_str(), score.colour.c_str(), score.background.c_str(),
        score.motion.c_str(), score.pitch, score.first_third_pitch, score.last_third_pitch,
        score.rms, score.spectral_crest, score.quiet_share,
        adherence.all() ? "" : "  <-- does not fit");
  }
  // `LTX_CONTACT_SHEET=sheet.png` keeps the pictures for a person to look at.
  if (const char* path = std::getenv("LTX_CONTACT_SHEET")) {
    EXPECT_TRUE(sheet.Write(path).ok());
  }
  EXPECT_EQ(colours, total);
  EXPECT_EQ(backgrounds, total);
  // The model itself misses a motion now and then (39 of 40 in the reference's own runs).
  EXPECT_GE(motions, total - 2);
  EXPECT_EQ(sounds, total);
}

}  // namespace
}  // namespace ltx::adherence
