#include "server/jobs/event_log.h"

#include "gtest/gtest.h"

namespace ltx::server {
namespace {

v1::GenerateVideoEvent Queued(int position) {
  v1::GenerateVideoEvent event;
  event.mutable_queued()->set_position(position);
  return event;
}

TEST(EventLogTest, NumbersFromOneAndFindsFromANumberOn) {
  EventLog log(10);
  EXPECT_EQ(log.last_number(), 0);
  EXPECT_EQ(log.From(0), nullptr);
  for (int i = 1; i <= 3; ++i) log.Append(Queued(i));
  EXPECT_EQ(log.last_number(), 3);
  EXPECT_EQ(log.From(0)->number(), 1);
  EXPECT_EQ(log.From(2)->queued().position(), 2);
  EXPECT_EQ(log.From(4), nullptr);
}

TEST(EventLogTest, TheOldestMakeRoomAndNumbersGoOn) {
  EventLog log(3);
  for (int i = 1; i <= 100; ++i) log.Append(Queued(i));
  EXPECT_EQ(log.events().size(), 3u);
  EXPECT_EQ(log.From(1)->number(), 98);
  EXPECT_EQ(log.From(100)->queued().position(), 100);
}

TEST(EventLogTest, RestoredEventsKeepTheirNumbers) {
  EventLog log(10);
  v1::GenerateVideoEvent event = Queued(1);
  event.set_number(7);
  log.Restore(event);
  log.Restore(event);  // Not a second time.
  log.Append(Queued(2));
  EXPECT_EQ(log.events().size(), 2u);
  EXPECT_EQ(log.From(1)->number(), 7);
  EXPECT_EQ(log.last_number(), 8);
}

}  // namespace
}  // namespace ltx::server
