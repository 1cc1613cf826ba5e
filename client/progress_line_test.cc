#include "client/progress_line.h"

#include "gtest/gtest.h"

namespace ltx::client {
namespace {

v1::GenerateVideoEvent ProgressEvent(int done, int total) {
  v1::GenerateVideoEvent event;
  v1::Progress* progress = event.mutable_progress();
  progress->set_phase(v1::PHASE_STAGE_2);
  progress->set_unit(1);
  progress->set_units(3);
  progress->set_units_done(done);
  progress->set_units_total(total);
  progress->set_eta_seconds(61.2);
  return event;
}

TEST(ProgressTextTest, ShowsPhaseUnitAndTimeLeft) {
  EXPECT_EQ(ProgressText(ProgressEvent(5, 10), 10), "[#####.....]  50%  stage 2 1/3  1:02 left");
}

TEST(ProgressTextTest, NamesThePassesOfAForward) {
  v1::GenerateVideoEvent event = ProgressEvent(5, 10);
  event.mutable_progress()->set_passes("cond+uncond");
  EXPECT_EQ(ProgressText(event, 4), "[##..]  50%  stage 2 1/3 cond+uncond  1:02 left");
}

TEST(ProgressTextTest, NonsenseStaysInsideTheBar) {
  EXPECT_EQ(ProgressText(ProgressEvent(20, 10), 4), "[####] 100%  stage 2 1/3  1:02 left");
  EXPECT_EQ(ProgressText(ProgressEvent(-1, 0), 4), "[....]   0%  stage 2 1/3  1:02 left");
}

TEST(ProgressTextTest, TellsThePlaceInTheQueue) {
  v1::GenerateVideoEvent event;
  event.mutable_queued()->set_position(3);
  EXPECT_EQ(ProgressText(event, 10), "queued, 3 ahead");
  event.mutable_queued()->set_position(0);
  EXPECT_EQ(ProgressText(event, 10), "queued");
}

TEST(ProgressTextTest, MediaShowNothing) {
  v1::GenerateVideoEvent event;
  event.mutable_media_chunk();
  EXPECT_EQ(ProgressText(event, 10), "");
}

}  // namespace
}  // namespace ltx::client
