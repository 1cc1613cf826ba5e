#include "server/jobs/record_store.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ltx::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordStoreTest : public ::testing::Test {
 protected:
  RecordStoreTest() {
    std::string pattern = ::testing::TempDir() + "/records-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  static JobRecord Record(const std::string& id, uint64_t sequence) {
    JobRecord record;
    record.mutable_job()->set_job_id(id);
    record.mutable_job()->set_state(v1::JOB_STATE_QUEUED);
    record.mutable_job()->mutable_request()->set_prompt("\"quotes\"\nand \xc3\xa4");
    record.set_sequence(sequence);
    record.set_request_digest(std::string("\0\xff", 2));
    record.add_events()->set_number(1);
    return record;
  }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }
  std::string folder_;
};

TEST_F(RecordStoreTest, WhatWasSavedIsLoadedInOrder) {
  const RecordStore store(folder_);
  ASSERT_TRUE(store.Save(Record("later", 2)).ok());
  ASSERT_TRUE(store.Save(Record("first", 1)).ok());
  JobRecord changed = Record("later", 2);
  changed.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
  ASSERT_TRUE(store.Save(changed).ok());
  const RecordStore::Contents contents = store.Load();
  EXPECT_THAT(contents.warnings, IsEmpty());
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.records[0].SerializeAsString(), Record("first", 1).SerializeAsString());
  EXPECT_EQ(contents.records[1].SerializeAsString(), changed.SerializeAsString());
  store.Remove("first");
  EXPECT_EQ(store.Load().records.size(), 1u);
}

TEST_F(RecordStoreTest, HalfWrittenFilesAreRemovedAndStrangersNamed) {
  const RecordStore store(folder_);
  ASSERT_TRUE(store.Save(Record("good", 1)).ok());
  std::ofstream(folder_ + "/x.json.part-1-2") << "{";
  std::ofstream(folder_ + "/torn.json") << R"({"job": {"job_id": "to)";
  std::ofstream(folder_ + "/renamed.json") << R"({"job": {"job_id": "good"}})";
  std::ofstream(folder_ + "/newer.json") << R"({"job": {"job_id": "newer"}, "new_field": 1})";
  const RecordStore::Contents contents = store.Load();
  EXPECT_EQ(contents.records.size(), 2u);
  EXPECT_THAT(contents.warnings,
              ::testing::UnorderedElementsAre(HasSubstr("torn.json: no job record"),
                                              HasSubstr("renamed.json: the record of job")));
  EXPECT_FALSE(Exists("x.json.part-1-2"));
  EXPECT_TRUE(Exists("torn.json"));
}

/// A crash amid writing must leave the old record whole: it is replaced, never written into.
TEST_F(RecordStoreTest, ARecordIsReplacedAsAWhole) {
  const RecordStore store(folder_);
  ASSERT_TRUE(store.Save(Record("a", 1)).ok());
  std::ifstream old(folder_ + "/a.json");
  const std::string before((std::istreambuf_iterator<char>(old)), {});
  ASSERT_NE(before, "");
  ASSERT_TRUE(store.Save(Record("a", 2)).ok());
  old.clear();
  old.seekg(0);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(old)), {}), before);
  EXPECT_EQ(store.Load().records[0].sequence(), 2u);
}

TEST_F(RecordStoreTest, AFolderThatIsGone) {
  const RecordStore store("/no/such");
  EXPECT_EQ(store.Save(Record("a", 1)).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store.Load().records, IsEmpty());
}

}  // namespace
}  // namespace ltx::server
