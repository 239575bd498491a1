#include "framework/graph/name_index.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

class NameIndexTest : public testing::Test {
 protected:
  int32_t Find(std::string_view name) const {
    return index_.Find(name, [this](int32_t i) -> std::string_view { return names_[size_t(i)]; });
  }
  // Returns the number that has the name already, or kNone.
  int32_t Add(const std::string& name) {
    names_.push_back(name);
    const auto name_of = [this](int32_t i) -> std::string_view { return names_[size_t(i)]; };
    const int32_t other = index_.FindOrAdd(name, int32_t(names_.size()) - 1, name_of);
    if (other != NameIndex::kNone) names_.pop_back();
    return other;
  }
  std::vector<std::string> names_;
  NameIndex index_;
};

TEST_F(NameIndexTest, FindsWhatWasAddedAndNothingElse) {
  EXPECT_EQ(Find("a"), NameIndex::kNone);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(Add("scope/node_" + std::to_string(i)), NameIndex::kNone);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(Find("scope/node_" + std::to_string(i)), i);
  for (int i = 5000; i < 10000; ++i) ASSERT_EQ(Find("scope/node_" + std::to_string(i)), NameIndex::kNone);
  EXPECT_EQ(Find(""), NameIndex::kNone);
}

TEST_F(NameIndexTest, AnswersWhoHasANameThatIsTaken) {
  EXPECT_EQ(Add("a"), NameIndex::kNone);
  EXPECT_EQ(Add("b"), NameIndex::kNone);
  EXPECT_EQ(Add("b"), 1);
  EXPECT_EQ(Add("c"), NameIndex::kNone);
  EXPECT_EQ(Find("c"), 2);
}

TEST_F(NameIndexTest, RoomThatWasMadeInAdvanceChangesNoAnswer) {
  EXPECT_EQ(Add("a"), NameIndex::kNone);
  index_.Reserve(1000);
  EXPECT_EQ(Find("a"), 0);
  EXPECT_EQ(Find("b"), NameIndex::kNone);
  EXPECT_EQ(Add("b"), NameIndex::kNone);
  EXPECT_EQ(Find("b"), 1);
}

TEST_F(NameIndexTest, KnowsNothingAfterClear) {
  EXPECT_EQ(Add("a"), NameIndex::kNone);
  index_.Clear();
  EXPECT_EQ(Find("a"), NameIndex::kNone);
  names_.clear();
  EXPECT_EQ(Add("b"), NameIndex::kNone);
  EXPECT_EQ(Find("b"), 0);
}

}  // namespace
}  // namespace thalweg
