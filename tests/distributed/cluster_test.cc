#include "distributed/cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;

std::string Wrong(std::string_view json) {
  auto spec = ClusterSpec::Parse(json);
  return spec.ok() ? "" : std::string(Message(spec.status()));
}

TEST(Cluster, ReadsWhatPeopleWrite) {
  auto spec = ClusterSpec::Parse(R"({"worker": ["unix:w0", "unix:w1"], "ps": {"3": "unix://p"}})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->tasks().size(), 3u);
  EXPECT_EQ(spec->tasks()[0].title(), "task /job:ps/task:3 at unix:p");
  EXPECT_EQ(spec->tasks()[2].title(), "task /job:worker/task:1 at unix:w1");
  ASSERT_NE(spec->Find({"worker", 1}), nullptr);
  EXPECT_EQ(spec->Find({"worker", 2}), nullptr);
  EXPECT_EQ(spec->Find({"ps", 0}), nullptr);
}

TEST(Cluster, ItsTextReadsBackTheSame) {
  auto spec = ClusterSpec::Parse(R"({"b": {"1": "unix:42", "0": "host:1"}, "a": ["grpc://h:2"]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  auto again = ClusterSpec::Parse(spec->text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->text(), spec->text());
  EXPECT_EQ(again->tasks()[1].address.text(), "grpc:host:1");
}

TEST(Cluster, TakesTfConfigAsItIs) {
  auto config = ParseTaskConfig(R"({
    "cluster": {"chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"], "ps": ["10.0.0.4:2222"]},
    "task": {"type": "worker", "index": 1}, "environment": "cloud"})");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_TRUE(config->task.has_value());
  EXPECT_EQ(config->task->text(), "/job:worker/task:1");
  EXPECT_EQ(config->cluster.Find(*config->task)->address.text(), "grpc:10.0.0.3:2222");
  auto text_index = ParseTaskConfig(R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": "0"}})");
  ASSERT_TRUE(text_index.ok()) << text_index.status();
  EXPECT_EQ(text_index->task->index, 0);
}

TEST(Cluster, SaysWhatIsWrongWithIt) {
  EXPECT_THAT(Wrong(""), HasSubstr("JSON, line 1, column 1: a value must stand here"));
  EXPECT_THAT(Wrong("{\"a\": [\"unix:x\",\n ]}"), HasSubstr("line 2, column 2"));
  EXPECT_THAT(Wrong("[1]"), HasSubstr("an object must stand there"));
  EXPECT_THAT(Wrong("{}"), HasSubstr("there are no tasks"));
  EXPECT_THAT(Wrong(R"({"a": 7})"), HasSubstr("job 'a' must be a list of addresses"));
  EXPECT_THAT(Wrong(R"({"a": [7]})"), HasSubstr("the address of /job:a/task:0 must be a text"));
  EXPECT_THAT(Wrong(R"({"a": ["nowhere"]})"), HasSubstr("/job:a/task:0: address 'nowhere': write `scheme:address`"));
  EXPECT_THAT(Wrong(R"({"a": ["unix:x y"]})"), HasSubstr("other characters than letters, digits and signs of ASCII"));
  EXPECT_THAT(Wrong(R"({"a/b": ["unix:x"]})"), HasSubstr("'a/b' is no name of a job"));
  EXPECT_THAT(Wrong(R"({"a": {"-1": "unix:x"}})"), HasSubstr("a task '-1'"));
  EXPECT_THAT(Wrong(R"({"a": ["unix:x"], "b": ["unix:x"]})"), HasSubstr("/job:a/task:0 and /job:b/task:0 have one address, unix:x"));
  EXPECT_THAT(Wrong(R"({"a": {"0": "unix:x", "00": "unix:y"}})"), HasSubstr("/job:a/task:0 stands there twice"));
  EXPECT_THAT(Wrong(std::string(200, '[')), HasSubstr("too deep"));
  EXPECT_THAT(Wrong("{\"a"), HasSubstr("a text has no end"));
}

TEST(Cluster, MayNameAMembershipService) {
  const auto spec = ClusterSpec::Parse(R"({"cluster": {"ps": ["unix:p"]}, "membership": "etcd:host:2379/team"})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->membership(), "etcd:host:2379/team");
  EXPECT_EQ(ClusterSpec::Parse(spec->text())->text(), spec->text());
  EXPECT_EQ(ClusterSpec::Parse(spec->text())->membership(), spec->membership());
  EXPECT_FALSE(ClusterSpec::Parse(R"({"cluster": {"ps": ["unix:p"]}, "membership": 3})").ok());
}

}  // namespace
}  // namespace thalweg::distributed
