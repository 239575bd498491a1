#include "framework/base/keyed_hash.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "framework/base/strings.h"

namespace thalweg {
namespace {

TEST(KeyedHashTest, NamesThatCollideUnderOneKeySpreadUnderAnother) {
  const HashKey known{1, 2}, other{1, 3};
  std::vector<std::string> chosen;
  for (int i = 0; chosen.size() < 200; ++i) {
    std::string name = StrCat("layer_", i, "/weights");
    if (KeyedHash(name, known) % 256 == 7) chosen.push_back(std::move(name));
  }
  std::set<uint64_t> slots;
  for (const std::string& name : chosen) slots.insert(KeyedHash(name, other) % 256);
  EXPECT_GT(slots.size(), 100u);  // 139 of 200 are expected in 256 slots
}

TEST(KeyedHashTest, EveryByteAndTheLengthCount) {
  const HashKey key{3, 4};
  const std::string zeros(20, '\0');
  std::set<uint64_t> seen;
  for (size_t n = 0; n <= 20; ++n) seen.insert(KeyedHash(std::string_view(zeros).substr(0, n), key));
  for (size_t i = 0; i < 20; ++i) {
    std::string one = zeros;
    one[i] = 1;
    seen.insert(KeyedHash(one, key));
  }
  EXPECT_EQ(seen.size(), 41u);
  EXPECT_EQ(KeyedHash("name"), KeyedHash(std::string("name")));
}

}  // namespace
}  // namespace thalweg
