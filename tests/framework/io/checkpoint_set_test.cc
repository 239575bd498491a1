#include "framework/io/checkpoint_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"
#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

TEST(CheckpointSetTest, SavesAndReadsThroughTheTable) {
  const tw_checkpoint_api* api = CheckpointSet();
  EXPECT_EQ(api->size, sizeof(tw_checkpoint_api));
  test::TempFolder folder;
  const std::string prefix = folder / "c";
  tw_checkpoint_writer* w = nullptr;
  ASSERT_TRUE(FromC(api->create(nullptr, prefix.data(), prefix.size(), &w)).ok());
  auto t = Tensor::Vector<int32_t>(TW_INT32, {4, 5, 6});
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(FromC(api->add(w, "a/b", 3, &t->view())).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(FromC(api->add(w, "a/b", 3, &t->view()))));
  EXPECT_TRUE(FromC(api->commit(w)).ok());  // and w is gone

  tw_checkpoint_reader* r = nullptr;
  ASSERT_TRUE(FromC(api->open(nullptr, prefix.data(), prefix.size(), &r)).ok());
  tw_tensor* out = nullptr;
  ASSERT_TRUE(FromC(api->read(r, "a/b", 3, &out)).ok());
  const Tensor back = Tensor::Adopt(out);
  EXPECT_EQ(back.shape(), Shape({3}));
  EXPECT_EQ(back.as<int32_t>()[2], 6);
  EXPECT_TRUE(absl::IsNotFound(FromC(api->read(r, "x", 1, &out))));
  api->close(r);
}

TEST(CheckpointSetTest, DiscardLeavesNothingAndTakesNull) {
  const tw_checkpoint_api* api = CheckpointSet();
  test::TempFolder folder;
  const std::string prefix = folder / "c";
  tw_checkpoint_writer* w = nullptr;
  ASSERT_TRUE(FromC(api->create(nullptr, prefix.data(), prefix.size(), &w)).ok());
  api->discard(w);
  EXPECT_THAT(folder.names(), testing::IsEmpty());
  api->discard(nullptr);
  api->close(nullptr);
  tw_checkpoint_reader* r = nullptr;
  EXPECT_TRUE(absl::IsNotFound(FromC(api->open(nullptr, prefix.data(), prefix.size(), &r))));
  EXPECT_EQ(r, nullptr);
}

}  // namespace
}  // namespace thalweg
