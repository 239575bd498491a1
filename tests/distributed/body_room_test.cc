#include "distributed/body_room.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thalweg::distributed {
namespace {

TEST(BodyRoom, HasALimitForAllAndOneForEachClient) {
  const auto room = std::make_shared<BodyRoom>(100, 40);
  EXPECT_EQ(room->Take("", 101), nullptr);
  EXPECT_EQ(room->Take("ann", 41), nullptr);
  auto ann = room->Take("ann", 30);
  ASSERT_NE(ann, nullptr);
  EXPECT_EQ(room->Take("ann", 11), nullptr);
  // Others have theirs.
  const auto bob = room->Take("bob", 40), tasks = room->Take("", 30);
  EXPECT_NE(bob, nullptr);
  EXPECT_NE(tasks, nullptr);
  EXPECT_EQ(room->Take("eve", 1), nullptr);
  ann.reset();
  EXPECT_NE(room->Take("eve", 30), nullptr);
  EXPECT_NE(room->Take("ann", 30), nullptr);
}

TEST(BodyRoom, GoesWithItsLastShareAndCountsRightFromManyThreads) {
  auto room = std::make_shared<BodyRoom>(1000, 500);
  const auto last = room->Take("ann", 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([room, t] {
      for (int i = 0; i < 20000; ++i) {
        const auto one = room->Take(t % 2 ? "ann" : "bob", 100), two = room->Take("", 100);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(room->Take("", 1000), nullptr);
  EXPECT_NE(room->Take("bob", 500), nullptr);
  EXPECT_NE(room->Take("ann", 499), nullptr);
  room.reset();
}

}  // namespace
}  // namespace thalweg::distributed
